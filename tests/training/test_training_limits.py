"""What training refuses or warns of: names of metrics that are taken, and rewards that 32 bits cannot hold."""

import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TransformReward
from toy_envs import TINY, Counter, walk

import steadyrl
from steadyrl import DQN, PPO, TD3, MeanGini, QLearning, Reinforce, Tamar
from steadyrl.envs.guarded_maze import GuardedMazeEnv
from steadyrl.envs.guarded_maze.definition import MazeMetrics
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.training.engines.engine import DivergedError
from steadyrl.training.engines.reward_offset import STEPS, RewardOffsetCheck
from steadyrl.training.records import is_reserved


class Reporting(Counter):
    """Ends every episode with metrics of the given names; `names` may depend on the number of the episode."""

    def __init__(self, names):
        super().__init__()
        self.names, self.episode = names, -1

    def reset(self, **options):
        self.episode += 1
        return super().reset(**options)

    def step(self, action):
        *step, _ = super().step(action)
        names = self.names(self.episode) if callable(self.names) else self.names
        return *step, {"episode_metrics": dict.fromkeys(names, 1.0)}


def learn(env, kind=Reinforce, episodes=12, **settings):
    settings = {"hidden": (4,), "seed": 3, **({"episodes_per_update": 4} if kind is Reinforce else {}), **settings}
    agent = kind(env, **settings)
    agent.learn(total_episodes=episodes, progress_bar=False)
    return agent


# Names of metrics.

TAKEN = ["return", "discounted_return", "length", "episodes", "timesteps", "iteration", "time", "variance", "updates"]
TAKEN += ["undiscounted_gini_deviation", "idle_steps", "seconds_alive", "entropy", "greedy_return", "exact_mean"]


@pytest.mark.parametrize("name", TAKEN)
def test_a_metric_with_the_name_of_something_recorded_is_refused(name):
    message = rf"Reporting.*: the episode metric '{name}' has the name .* Rename it in info\[\"episode_metrics\"\]\.$"
    with pytest.raises(FaultyEnvironmentError, match=message):
        learn(Reporting(["fine_rate", name]))


@pytest.mark.parametrize("kind", [Reinforce, DQN])
def test_methods_and_vector_environments_refuse_it_before_anything_is_learned(kind):
    env = Reporting(["length"])
    agent = kind(env, hidden=(4,))
    with pytest.raises(FaultyEnvironmentError, match="'length'"):
        agent.learn(total_episodes=4, progress_bar=False)
    assert (agent.episodes, agent.history) == (0, [])
    with pytest.raises(FaultyEnvironmentError, match="'length'"):
        learn(SyncVectorEnv([lambda: Reporting(["length"])] * 2))


def test_compiled_training_refuses_it_too(monkeypatch):
    report = MazeMetrics.flags
    monkeypatch.setattr(
        MazeMetrics, "flags", lambda self, red, steps, ended: {**report(self, red, steps, ended), "return": ended}
    )
    agent = MeanGini("steadyrl/GuardedMaze-v0")
    assert agent.engine == "compiled"
    with pytest.raises(FaultyEnvironmentError, match=r"^steadyrl/GuardedMaze-v0: the episode metric 'return'"):
        agent.learn(total_episodes=50, progress_bar=False)


@pytest.mark.parametrize("kind", [MeanGini, PPO, QLearning, Tamar])
def test_every_recorded_name_is_reserved(kind):
    agent = kind("steadyrl/GuardedMaze-v0")
    agent.learn(total_episodes=100, progress_bar=False)
    reported = {"goal_rate", "red_visit_rate", "white_path_rate"}
    assert reported <= set(agent.history[-1])
    for record in agent.history:
        assert [metric for metric in record if not is_reserved(metric)] == [x for x in record if x in reported]


@pytest.mark.parametrize("name", TINY)
def test_every_recorded_name_of_networks_is_reserved(name):
    space, settings = TINY[name]
    agent = {"dqn": DQN, "td3": TD3}[name](walk(space), **settings)
    agent.learn(total_episodes=10, progress_bar=False)
    assert all(map(is_reserved, agent.history[-1]))
    assert "critic_loss" in agent.history[-1]


@pytest.mark.parametrize("kind", [Reinforce, DQN])
def test_names_that_change_are_refused_with_the_number_of_the_episode_in_training(kind):
    env = Reporting(lambda episode: ["b_rate"] if episode == 9 else ["a_rate"])
    message = r"Reporting.*: episode 9 ended with the metrics \['b_rate'\], episode 0 with \['a_rate'\]"
    with pytest.raises(FaultyEnvironmentError, match=message):
        learn(env, kind)


def test_names_that_change_between_rounds_are_refused():
    env = Reporting(lambda episode: ["b_rate"] if episode >= 8 else ["a_rate"])
    with pytest.raises(FaultyEnvironmentError, match=r"episode 8 ended with the metrics \['b_rate'\], episode 0 with"):
        learn(env)


# Rewards that 32 bits cannot hold.


class Paying(Counter):
    """Pays the same at each step, in episodes of 3 steps."""

    def __init__(self, reward):
        super().__init__()
        self.reward = reward

    def step(self, action):
        self.t += 1
        return self.observation(), self.reward, self.t == 3, False, {}


@pytest.mark.parametrize("kind", [Reinforce, DQN])
@pytest.mark.parametrize("reward", [1e39, -1e39])
def test_rewards_beyond_32_bits_are_refused(kind, reward):
    where = r"at step 1 of episode 0 \(seed \d+\)\."
    message = rf"Paying.*: reward -?1e\+39 that does not fit in 32 bits.* {where} Scale .*TransformReward"
    with pytest.raises(FaultyEnvironmentError, match=message):
        learn(Paying(reward), kind)
    report = steadyrl.evaluate(lambda observation: 0, Paying(reward), episodes=2)
    assert report.returns.tolist() == [3 * reward] * 2


def test_rewards_beyond_32_bits_are_refused_in_compiled_training():
    agent = MeanGini(GuardedMazeEnv(goal_reward=1e39))
    assert agent.engine == "compiled"
    with pytest.raises(FaultyEnvironmentError, match=r"GuardedMaze.*reward 1e\+39 that does not fit in 32 bits"):
        agent.learn(total_episodes=50, progress_bar=False)


@pytest.mark.parametrize("kind", [Reinforce, DQN])
def test_returns_beyond_32_bits_are_refused(kind):
    message = r"Paying.*: return -6e\+38 of episode 0 that does not fit in 32 bits.* Scale .*TransformReward"
    with pytest.raises(FaultyEnvironmentError, match=message):
        learn(Paying(-2e38), kind)


def test_divergence_is_blamed_on_rewards_whose_squares_do_not_fit():
    with pytest.raises(DivergedError, match=r"Returns were as large as 3e\+30, .* 32 bits: scale .*TransformReward"):
        learn(Paying(1e30), DQN, episodes=20, learning_starts=4, train_freq=2, batch_size=4)


def test_divergence_is_blamed_on_learning_rates_otherwise():
    agent = learn(Paying(1.0))
    assert "Lower policy_learning_rate" in str(DivergedError([agent]))


# Rewards that differ too little.


class Cue(gym.Env):
    """The observation names the action that pays 1; everything pays an offset."""

    observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

    def __init__(self, offset=0.0):
        self.offset = offset

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation(), {}

    def step(self, action):
        self.t += 1
        reward = self.offset + float(action == self.cue)
        return self.observation(), reward, False, self.t == 50, {}

    def observation(self):
        self.cue = int(self.np_random.random() < 0.5)
        return np.eye(2, dtype=np.float32)[self.cue]


def warnings_of(env, episodes=25):
    agent = DQN(env, hidden=(4,), learning_starts=5000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent.learn(total_episodes=episodes, progress_bar=False)
    return [str(warning.message) for warning in caught if warning.category is UserWarning]


@pytest.mark.parametrize("offset", [1e3, 1e6, -1e6, 1e9])
def test_an_offset_that_hides_the_differences_is_reported_once(offset):
    (message,) = warnings_of(Cue(offset), episodes=50)
    assert "Cue" in message
    assert re.search(
        rf"the first {STEPS} rewards are -?\S+ on average, with a standard deviation of only 0\.5", message
    )
    assert f"TransformReward(env, lambda r: r {'-' if offset > 0 else '+'} " in message
    assert warnings_of(TransformReward(Cue(offset), lambda r: r - offset)) == []


@pytest.mark.parametrize("offset", [0.0, 1.0, 10.0])
def test_small_offsets_are_not(offset):
    assert warnings_of(Cue(offset)) == []


@pytest.mark.parametrize(
    "env", ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]
)
def test_ordinary_environments_are_not(env):
    assert checked(gym.make(env)) == []


@pytest.mark.filterwarnings("ignore")  # The import of Box2D warns.
@pytest.mark.parametrize("env", ["LunarLander-v3", "HalfCheetah-v5", "InvertedDoublePendulum-v5", "Hopper-v5"])
def test_physics_are_not(env):
    try:
        made = gym.make(env)
    except gym.error.DependencyNotInstalled:
        pytest.skip("needs Box2D or MuJoCo")
    assert checked(made) == []


def checked(env, gamma=0.999):
    """The warnings about random actions in an environment."""

    class Agent:
        env_name = "Toy"
        settings = type("Settings", (), {"gamma": gamma})

    check = RewardOffsetCheck(Agent())
    env.reset(seed=0)
    env.action_space.seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(STEPS):
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            check.add(reward)
            if terminated or truncated:
                env.reset()
    return [str(warning.message) for warning in caught if "TransformReward" in str(warning.message)]
