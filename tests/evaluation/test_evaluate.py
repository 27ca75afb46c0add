"""`evaluate` with policies of every kind: returns, seeds, actions, and errors before and during play."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from steadyrl.agents.agent import Agent
from steadyrl.base.seeding import EvaluationStream, evaluation_stream_seed
from steadyrl.evaluation.evaluate import evaluate
from steadyrl.rollouts.episodes import Episodes


class Corridor(gym.Env):
    """Three steps with rewards of 1, 2 and 4 times the action; observes the step, and reports metrics at the end."""

    observation_space = spaces.Box(0, 3, (1,))
    action_space = spaces.Discrete(2)
    rewards = (1.0, 2.0, 4.0)

    def __init__(self):
        self.seeds = []
        self.closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.t, self.paid = 0, 0.0
        return self.observation(), {}

    def step(self, action):
        reward = self.rewards[self.t] * action
        self.t, self.paid = self.t + 1, self.paid + reward
        facts = {"full_rate": self.paid == 7, "episode_index": len(self.seeds) - 1}
        return self.observation(), reward, self.t == 3, False, {"facts": facts}

    def observation(self):
        return np.array([self.t], dtype=np.float32)

    def close(self):
        self.closed = True


class Lottery(Corridor):
    """One step that pays a normal draw from the episode's seed, plus the action."""

    action_space = spaces.Box(-1, 1, (1,))

    def step(self, action):
        return self.observation(), float(self.np_random.normal() + action[0]), True, False, {}


def always(action):
    return lambda observation: action


class Dice(Agent):
    """An agent that was never set up: it draws its actions from a random stream, and has a gamma."""

    gamma, engine = 0.5, "gymnasium"

    def __init__(self):
        pass

    def act_function(self, seed, deterministic=False):
        rng = np.random.default_rng(seed)
        return lambda observation, mask=None, episode_start=False: 1 if deterministic else int(rng.integers(2))


def episode_seed(seed, index):
    return evaluation_stream_seed(seed, EvaluationStream.EPISODES, index)


def test_discounted_and_undiscounted_returns():
    report = evaluate(always(1), Corridor(), episodes=3, gamma=0.5)
    np.testing.assert_array_equal(report.returns, [7, 7, 7])
    np.testing.assert_array_equal(report.discounted_returns, [3, 3, 3])  # 1 + 2/2 + 4/4
    assert report.mean == (7, 7, 7)
    assert report.discounted.mean == (3, 3, 3)
    assert report.gini_deviation == (0, 0, 0)


def test_known_dispersion():
    """Every other episode pays 7: of n the mean is 3.5, and n^2/4 of n(n-1)/2 pairs are 7 apart."""
    env, n = Corridor(), 20
    report = evaluate(lambda observation: len(env.seeds) % 2, env, episodes=n)
    assert report.mean.value == 3.5
    assert report.gini_deviation.value == pytest.approx(7 * n / (4 * (n - 1)))
    assert report.cvar_10 == (0, 0, 0)
    assert report.facts == {"full_rate": 0.5, "episode_index": (n - 1) / 2}


def test_gamma_is_the_one_given_else_the_policys_else_one():
    assert evaluate(Dice(), Corridor(), episodes=2, gamma=0.9).gamma == 0.9
    assert evaluate(Dice(), Corridor(), episodes=2, deterministic=True).discounted.mean.value == 3
    report = evaluate(always(1), Corridor(), episodes=2)
    assert report.gamma == 1
    assert report.discounted.mean == report.mean


def test_episodes_start_from_seeds_of_their_own():
    few, many = Lottery(), Lottery()
    a, b = evaluate(always([0.0]), few, episodes=5), evaluate(always([0.0]), many, episodes=30)
    assert few.seeds == many.seeds[:5] == [episode_seed(0, index) for index in range(5)]
    assert len(set(many.seeds)) == 30
    np.testing.assert_array_equal(a.returns, b.returns[:5])


def test_an_agents_first_episodes_are_the_same_when_more_are_played():
    a, b = evaluate(Dice(), Corridor(), episodes=5), evaluate(Dice(), Corridor(), episodes=40)
    np.testing.assert_array_equal(a.returns, b.returns[:5])
    assert len(set(b.returns)) > 4


def test_same_seed_same_report():
    a, b, c = (evaluate(Dice(), Corridor, episodes=30, seed=seed) for seed in (0, 0, 1))
    assert a == b
    np.testing.assert_array_equal(a.returns, b.returns)
    assert not np.array_equal(a.returns, c.returns)
    assert c.seed == 1


def test_global_random_numbers_are_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    evaluate(Dice(), Corridor, episodes=10)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_an_agent_that_is_compiled_is_asked_first():
    class Compiled(Dice):
        def play_compiled(self, env, episodes, seed, deterministic=False, first=0):
            self.asked = (type(env), episodes, deterministic)
            if not deterministic:
                return None
            rewards = np.tile(np.array([3.0, 1.0], dtype=np.float32), (episodes, 1))
            facts = {"goal_rate": np.arange(episodes) % 2}
            return Episodes(None, None, rewards, np.ones_like(rewards), None, None, facts)

    agent = Compiled()
    rolled = evaluate(agent, Corridor, episodes=4, deterministic=True)
    assert agent.asked == (Corridor, 4, True)
    assert (rolled.mean.value, rolled.discounted.mean.value) == (4, 3.5)
    assert rolled.facts == {"goal_rate": 0.5}
    assert rolled.returns.dtype == np.float64
    np.testing.assert_array_equal(
        evaluate(agent, Corridor, episodes=9).returns, evaluate(Dice(), Corridor, episodes=9).returns
    )


class Recurrent:
    """Like a recurrent Stable-Baselines3 policy: records what it is given, acts 1 from the second step."""

    def __init__(self):
        self.given = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.given.append((state, episode_start.tolist(), deterministic))
        count = 0 if state is None else state[0]
        return np.array(int(count > 0)), (count + 1,)


def test_predict_gets_its_state_back_and_the_starts_of_episodes():
    policy = Recurrent()
    report = evaluate(policy, Corridor, episodes=2, deterministic=True)
    one_episode = [(None, [True], True), ((1,), [False], True), ((2,), [False], True)]
    assert policy.given == one_episode * 2
    np.testing.assert_array_equal(report.returns, [6, 6])


def test_a_network_called_actor_does_not_make_an_agent():
    """Stable-Baselines3's TD3 and SAC have such an attribute, and it can be called."""

    class TD3(Recurrent):
        gamma = 0.99

        def __init__(self):
            super().__init__()
            self.actor = type("Network", (), {"__call__": lambda *_: pytest.fail("called the network")})()

    report = evaluate(TD3(), Corridor, episodes=2)
    assert (report.mean.value, report.gamma) == (6, 0.99)


@pytest.mark.parametrize("action", [1, np.int64(1), np.array(1), np.array([1]), np.array([[1]]), True, np.bool_(True)])
def test_one_element_stands_for_a_discrete_action(action):
    class Strict(Corridor):
        def step(self, action):
            assert type(action) is int
            return super().step(action)

    assert evaluate(always(action), Strict, episodes=2).mean.value == 7


@pytest.mark.parametrize("action", [[0.5], np.array([0.5]), np.array([0.5], dtype=np.float32), np.array([1])])
def test_numbers_become_a_box_action(action):
    class Strict(Lottery):
        def step(self, action):
            assert action.dtype == np.float32
            return self.observation(), float(action[0]), True, False, {}

    assert evaluate(always(action), Strict, episodes=2).mean.value == float(action[0])


@pytest.mark.parametrize(
    ("env", "action"),
    [
        (Corridor, 2),
        (Corridor, -1),
        (Corridor, 0.5),
        (Corridor, np.array([0, 1])),
        (Corridor, None),
        (Corridor, (np.array([1, 2]), None)),
        (Lottery, [1.5]),
        (Lottery, [np.nan]),
        (Lottery, 0.5),
        (Lottery, [0.0, 0.0]),
        (Lottery, "left"),
        (Lottery, (np.array([1.0, 2.0]), None)),
    ],
)
def test_actions_outside_the_space(env, action):
    with pytest.raises(ValueError, match=r"action .* is not in the environment's (Discrete|Box).*Return an action"):
        evaluate(always(action), env, episodes=2)


def test_who_makes_an_environment_closes_it():
    mine, made = Corridor(), Corridor()
    evaluate(always(1), mine, episodes=2)
    evaluate(always(1), lambda: made, episodes=2)
    assert (mine.closed, made.closed) == (False, True)
    failing = Corridor()
    with pytest.raises(ValueError, match="is not in"):
        evaluate(always(2), lambda: failing, episodes=2)
    assert failing.closed


def test_an_environment_by_its_id():
    """CartPole pays 1 a step; pushing only to one side, it falls within 8 to 11."""
    report = evaluate(always(0), "CartPole-v1", episodes=20, gamma=0.5)
    assert 8 <= report.minimum <= report.maximum <= 11
    np.testing.assert_allclose(report.discounted_returns, 2 - 2 * 0.5**report.returns)


def test_returns_are_those_of_the_environment():
    env, expected = Lottery(), []
    for index in range(6):
        env.reset(seed=episode_seed(3, index))
        expected.append(env.step(np.zeros(1, np.float32))[1])
    report = evaluate(always([0.0]), Lottery, episodes=6, seed=3)
    np.testing.assert_array_equal(report.returns, expected)


def test_nothing_is_printed(capfd):
    evaluate(always(1), Corridor, episodes=5)
    assert capfd.readouterr() == ("", "")


def test_metrics_missing_from_an_episode():
    class Silent(Corridor):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, info if len(self.seeds) < 3 else {}

    with pytest.raises(ValueError, match=r"episode 2 ended with the metrics \[\], episode 0 with \['episode_index'"):
        evaluate(always(1), Silent, episodes=4)


@pytest.mark.parametrize("policy", [None, 3, "CartPole-v1", Recurrent, Dice])
def test_what_is_no_policy(policy):
    with pytest.raises(TypeError, match=r"policy is (a|the class) \w+: pass a steadyrl agent.*predict.*function"):
        evaluate(policy, Corridor, episodes=2)


def test_predict_without_a_state():
    class Regressor:
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return np.array(1)

    with pytest.raises(TypeError, match=r"predict of Regressor returned a ndarray, not \(action, state\)"):
        evaluate(Regressor(), Corridor, episodes=2)


def test_vector_environments_are_refused():
    with pytest.raises(TypeError, match=r"SyncVectorEnv: evaluation plays episodes of its own.*Pass the single"):
        evaluate(always(1), gym.vector.SyncVectorEnv([Corridor]), episodes=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 1}, "episodes=1: .* at least 2 .*Raise episodes"),
        ({"episodes": 0}, "episodes=0"),
        ({"episodes": 2.7}, "episodes=2.7: .*whole number"),
        ({"episodes": True}, "episodes=True"),
        ({"episodes": "ten"}, "episodes='ten'"),
        ({"gamma": 1.5}, "gamma=1.5: .*0 <= gamma <= 1"),
        ({"gamma": float("nan")}, "gamma=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": None}, "seed=None: .*whole number of at least 0"),
        ({"seed": 1.5}, "seed=1.5"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    env = Corridor()
    with pytest.raises(ValueError, match=message):
        evaluate(always(1), env, **settings)
    assert env.seeds == []  # Said before anything is played.
