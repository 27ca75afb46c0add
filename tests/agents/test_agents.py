"""What a user of an agent relies on: learning, predicting, seeds, callbacks, and errors that help."""

import dataclasses
import inspect

import gymnasium as gym
import jax
import numpy as np
import pytest

import steadyrl
from steadyrl.agents import AGENTS, MeanGini, Reinforce
from steadyrl.envs.guarded_maze import GuardedMazeEnv
from steadyrl.training.loop import learn_together

ENV = "steadyrl/GuardedMaze-v0"
CORRIDOR = "S.G"
SAFE_OR_RISKY = """
    . . .
    S # G
    . R .
"""


class Odd(gym.Env):
    """An environment with any spaces."""

    def __init__(self, observation=None, action=None):
        self.observation_space = observation or gym.spaces.Box(-1, 1, (2,))
        self.action_space = action or gym.spaces.Discrete(2)


def maze(**options):
    return gym.make(ENV, **options)


def table(agent):
    return np.asarray(agent.learner.theta)


@pytest.mark.parametrize("engine", ["compiled", pytest.param("gymnasium", marks=pytest.mark.slow)])
def test_risk_aversion_decides_between_a_gamble_and_a_safe_way(engine):
    """Both ways around the wall take 4 moves; one pays 1 more on average, by a gamble."""
    red = []
    for risk_aversion in (1e-9, 1.2):  # One program for both.
        settings = {"policy_learning_rate": 5e-3, "episodes_per_update": 20, "seed": 1, "engine": engine}
        env = maze(layout=SAFE_OR_RISKY, red_rewards=(-14, 0, 14))
        agent = MeanGini(env, risk_aversion=risk_aversion, **settings)
        agent.learn(total_episodes=2000, progress_bar=False)
        red.append(agent.history[-1]["red_visit_rate"])
        assert agent.history[-1]["goal_rate"] == 1
    assert red[0] > 0.5
    assert red[1] < 0.1
    state, _ = agent.env.reset(seed=0)
    rewards, over = [], False
    while not over:
        state, reward, over, *_ = agent.env.step(agent.predict(state, deterministic=True)[0])
        rewards.append(reward)
    assert rewards == [-1, -1, -1, 20], "the shortest safe way"


@pytest.mark.slow
def test_both_engines_estimate_the_same_metrics():
    """Over 200 episodes of a policy that does not change."""
    still = {"policy_learning_rate": 1e-30, "value_learning_rate": 1e-30, "seed": 3, "credit": "trajectory"}
    runs = [MeanGini(maze(), engine=engine, **still) for engine in ("compiled", "gymnasium")]
    for agent in runs:
        agent.learn(total_episodes=200, progress_bar=False)
    (compiled, hosted), work = (a.history for a in runs), {"idle_steps", "seconds_collecting", "seconds_updating"}
    assert hosted[0].keys() - compiled[0].keys() == work

    def mean(records, name):
        return np.mean([record[name] for record in records])

    difference = {name: abs(mean(compiled, name) - mean(hosted, name)) for name in ("return", "goal_rate")}
    assert 0 < difference["return"] < 4 * np.sqrt(2 * mean(compiled, "variance") / 200)
    assert difference["goal_rate"] < 4 * np.sqrt(2 * 0.2 * 0.8 / 200)
    for name, tolerance in (("entropy", 1e-5), ("value_loss", 0.1), ("risk_weight_std", 0.3)):
        assert mean(compiled, name) == pytest.approx(mean(hosted, name), rel=tolerance), name
    assert mean(compiled, "entropy") == pytest.approx(np.log(4), rel=1e-5)


def test_same_seed_same_bits():
    """In the compiled engine; `test_deep_agents.py` has it for the others."""
    runs = [MeanGini(maze(), seed=s).learn(total_episodes=150, progress_bar=False) for s in (5, 5, 6)]
    np.testing.assert_array_equal(table(runs[0]), table(runs[1]))
    assert not np.array_equal(table(runs[0]), table(runs[2]))


def test_a_run_in_pieces_is_the_run_in_one():
    whole = MeanGini(maze(), seed=2).learn(total_episodes=2500, progress_bar=False)
    pieces = MeanGini(maze(), seed=2)
    for episodes in (50, 1450, 1000):
        pieces.learn(total_episodes=episodes, progress_bar=False)
    np.testing.assert_array_equal(table(whole), table(pieces))
    without_clock = [{k: v for k, v in record.items() if k != "time"} for record in whole.history]
    assert without_clock == [{k: v for k, v in record.items() if k != "time"} for record in pieces.history]


def test_evaluating_does_not_change_learning():
    plain, watched = (MeanGini(maze(), seed=2) for _ in range(2))
    plain.learn(total_episodes=100, progress_bar=False)
    watched.learn(total_episodes=50, progress_bar=False)
    steadyrl.evaluate(watched, ENV, episodes=50)
    watched.predict(30)
    watched.learn(total_episodes=50, progress_bar=False)
    np.testing.assert_array_equal(table(plain), table(watched))


def test_a_callback_sees_each_round_and_only_false_stops():
    seen = []

    def callback(locals_, globals_):
        seen.append((locals_["self"], locals_["num_timesteps"], locals_["metrics"]["episodes"]))
        return np.bool_(False) if len(seen) == 3 else (None if len(seen) == 1 else 0)

    agent = MeanGini(maze(), seed=0).learn(total_episodes=1000, callback=callback, progress_bar=False)
    assert agent.episodes == 150
    assert [episodes for _, _, episodes in seen] == [50, 100, 150]
    assert all(who is agent for who, _, _ in seen)
    assert seen[-1][1] == agent.timesteps
    uncalled = MeanGini(maze(), seed=0).learn(total_episodes=150, progress_bar=False)
    np.testing.assert_array_equal(table(agent), table(uncalled))


@pytest.mark.slow
def test_budgets_are_met_in_whole_rounds():
    by_episodes = MeanGini(maze()).learn(total_episodes=101, progress_bar=False)
    assert by_episodes.episodes == 150
    by_steps = MeanGini(maze()).learn(by_episodes.timesteps - 1, progress_bar=False)
    assert by_steps.timesteps == by_episodes.timesteps
    hosted = MeanGini(maze(), engine="gymnasium").learn(5001, progress_bar=False)
    assert hosted.timesteps >= 5001 > hosted.timesteps - 50 * hosted.history[-1]["length"]


def test_predict_follows_the_policy_for_one_and_for_many():
    agent = MeanGini(maze(), seed=0)
    agent.learner = agent.learner._replace(theta=agent.learner.theta.at[30].set(np.log([0.1, 0.2, 0.3, 0.4])))
    action, state = agent.predict(30, state="kept")
    assert action.shape == ()
    assert agent.action_space.contains(action)
    assert state == "kept"
    drawn, _ = agent.predict(np.full(40_000, 30))
    np.testing.assert_allclose(np.bincount(drawn) / 40_000, [0.1, 0.2, 0.3, 0.4], atol=0.01)
    assert agent.predict(30, deterministic=True)[0] == 3
    np.testing.assert_array_equal(agent.predict(np.array([[30, 30]]), deterministic=True)[0], [[3, 3]])
    np.testing.assert_allclose(agent.probabilities()[30], [0.1, 0.2, 0.3, 0.4], atol=1e-6)


@pytest.mark.usefixtures("numpys_layers")
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (MeanGini, r"Use predict, or network='table' where states and actions are Discrete\.$"),
        (steadyrl.DQN, r"Use predict\.$"),
    ],
)
def test_a_network_has_no_table_of_probabilities(kind, remedy):
    agent = kind("CartPole-v1", hidden=(4,))
    with pytest.raises(TypeError, match=rf"^{agent.name} has learned a network, .* {remedy}"):
        agent.probabilities()


@pytest.mark.parametrize("observation", [36, -1, 1.5, np.array([0, 99])])
def test_predict_refuses_what_is_no_state(observation):
    with pytest.raises(ValueError, match="is not in Discrete"):
        MeanGini(maze()).predict(observation)


@pytest.mark.slow
def test_any_tabular_gymnasium_environment_will_do():
    rates = {"policy_learning_rate": 0.5, "value_learning_rate": 0.1}
    agent = Reinforce(gym.make("FrozenLake-v1", is_slippery=False), episodes_per_update=20, seed=0, **rates)
    agent.learn(total_episodes=1200, progress_bar=False)
    assert agent.history[0]["return"] < 0.2
    assert agent.history[-1]["return"] > 0.9
    assert agent.engine == "gymnasium"


def test_environments_may_be_ids_instances_or_factories():
    agents = [MeanGini(env, seed=1) for env in (ENV, maze(), maze)]
    for agent in agents:
        agent.learn(total_episodes=50, progress_bar=False)
    np.testing.assert_array_equal(table(agents[0]), table(agents[1]))
    np.testing.assert_array_equal(table(agents[0]), table(agents[2]))


def test_divergence_is_an_error_that_keeps_what_was_learned():
    agent = MeanGini(maze(), policy_learning_rate=1e30, value_learning_rate=1e30, seed=0)
    with pytest.raises(FloatingPointError, match="policy_learning_rate"):
        agent.learn(total_episodes=5000, progress_bar=False)
    assert np.all(np.isfinite(table(agent)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanGini("MlpPolicy", ENV), "one unnamed argument"),
        (lambda: MeanGini(ENV, verbose=1), "verbose: there is no such setting: use learn"),
        (lambda: MeanGini(ENV, device="cuda"), "device: there is no such setting: JAX chooses the device"),
        (lambda: MeanGini("steadyrl/GuardedMaz-v0"), "Did you mean 'steadyrl/GuardedMaze-v0'"),
        (lambda: MeanGini(ENV, risk_aversoin=1), "Did you mean 'risk_aversion'"),
        (lambda: MeanGini(ENV, risk_aversion=-1), "risk_aversion=-1.0: it must be at least 0"),
        (lambda: MeanGini(ENV, estimator="exact"), "one of unbiased, paper"),
        (lambda: MeanGini(ENV, episodes_per_update=2), "at least 3"),
        (lambda: MeanGini(ENV, engine="gpu"), "unknown engine 'gpu'"),
        (lambda: MeanGini("FrozenLake-v1", engine="compiled"), "engine='gymnasium'"),
        (lambda: MeanGini(ENV, seed=-1), "seed=-1"),
        (lambda: steadyrl.QLearning("CartPole-v1"), "learns a table"),
        (lambda: MeanGini("CartPole-v1", network="table"), "network='mlp'"),
        (lambda: MeanGini(lambda: Odd(action=gym.spaces.Text(3))), "action space Text"),
        (lambda: MeanGini(lambda: Odd(gym.spaces.Text(5))), "observation space Text"),
        (lambda: MeanGini(3), "Gymnasium id"),
        (lambda: MeanGini(lambda: 3), "factory returned int"),
        (lambda: steadyrl.MeanRisk(ENV, measure="ginny"), "Did you mean 'gini'"),
        (lambda: Reinforce(ENV).learn(), "one of the two"),
        (lambda: Reinforce(ENV).learn(10, total_episodes=10), "one of the two"),
        (lambda: Reinforce(ENV).learn(total_episodes=0), "at least 1"),
        (lambda: learn_together([]), "at least one agent"),
        (lambda: learn_together([Reinforce(ENV), MeanGini(ENV)], total_episodes=50), "seeds and in numbers"),
        (lambda: learn_together([Reinforce(ENV), Reinforce(maze(goal_reward=40))], total_episodes=5), "seeds and in"),
        (lambda: learn_together([Reinforce(ENV), Reinforce(ENV, inner_updates=2)], total_episodes=5), "compiled for"),
    ],
)
def test_mistakes_get_an_error_that_helps(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_help_lists_every_setting_with_its_default():
    for kind in AGENTS.values():
        parameters = inspect.signature(kind).parameters
        for field in dataclasses.fields(kind.Settings):
            assert parameters[field.name].default == field.default
            assert f"{field.name} = {field.default}" in kind.__doc__
            assert field.metadata["sentence"] in " ".join(kind.__doc__.split())
        assert list(parameters)[:3] == ["env", "seed", "engine"]


def test_a_maze_with_its_own_rules_is_not_compiled():
    class Doubled(GuardedMazeEnv):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, 2 * reward, *rest

    assert Reinforce(Doubled()).engine == "gymnasium"
    assert Reinforce(GuardedMazeEnv()).engine == "compiled"


def test_an_agent_is_not_evaluated_in_a_world_of_another_size():
    with pytest.raises(ValueError, match="observation_space is Discrete"):
        steadyrl.evaluate(Reinforce(maze()), maze(layout=CORRIDOR), episodes=5)


def test_sixty_four_bits_stay_off():
    MeanGini(ENV).learn(total_episodes=50, progress_bar=False)
    assert not jax.config.jax_enable_x64
