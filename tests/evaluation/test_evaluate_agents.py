"""`evaluate` of trained and untrained agents, against numbers recorded before evaluation had more than one path."""

import numpy as np
import pytest
from paper_settings import NETWORK, RISK_AVERSION, TABLE
from toy_envs import Counter, length

from steadyrl import MeanGini, evaluate

MAZE = "steadyrl/GuardedMaze-v0"


def test_a_compiled_agent_in_the_maze():
    agent = MeanGini(MAZE, seed=0, risk_aversion=RISK_AVERSION, **TABLE).learn(total_episodes=500, progress_bar=False)
    report = evaluate(agent, MAZE, episodes=20)
    assert agent.engine == "compiled"
    expected = [-114, -27, -35, -86, -114, -100, -100, -34, -114, -100]
    expected += [-100, -86, -100, -100, -72, -20, -100, -67, -4, -89]
    np.testing.assert_array_equal(report.returns, expected)
    assert report.facts == {"goal_rate": 0.35, "red_visit_rate": 0.7, "white_path_rate": 0.0}
    other = evaluate(agent, MAZE, episodes=20, seed=3)
    np.testing.assert_allclose(other.discounted_returns[:3], [-81.957425, -81.580980, -95.207853], rtol=1e-6)
    np.testing.assert_array_equal(evaluate(agent, MAZE, episodes=20, deterministic=True).returns, [-100] * 20)
    np.testing.assert_array_equal(evaluate(agent, MAZE, episodes=5).returns, expected[:5])


def test_an_agent_of_the_gymnasium_engine():
    agent = MeanGini("CartPole-v1", seed=0, mean="vpg", initial_output_scale=NETWORK["initial_output_scale"])
    assert agent.engine == "gymnasium"
    report = evaluate(agent, "CartPole-v1", episodes=10)
    np.testing.assert_array_equal(report.returns, [10, 18, 35, 13, 17, 23, 11, 22, 11, 25])
    greedy = evaluate(agent, "CartPole-v1", episodes=10, deterministic=True)
    np.testing.assert_array_equal(greedy.returns, [9, 10, 9, 8, 9, 9, 9, 9, 9, 9])


def test_a_table_of_the_gymnasium_engine():
    report = evaluate(MeanGini(MAZE, seed=0, engine="gymnasium"), MAZE, episodes=10)
    np.testing.assert_array_equal(report.returns, [-100, -100, -100, -100, -100, -21, -9, -100, -100, -114])
    assert report.facts == {"goal_rate": 0.2, "red_visit_rate": 0.3, "white_path_rate": 0.0}


class Watcher:
    """Keeps what it is shown."""

    def __init__(self):
        self.shown = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.shown.append(observation)
        return 0, None

    def __call__(self, observation):
        return self.predict(observation)[0]


class Recording(Counter):
    """Keeps the observations that a policy acts on."""

    def __init__(self, kind):
        super().__init__(kind)
        self.given = []

    def observation(self):
        observation = super().observation()
        if self.t < length(self.seed):
            self.given.append(observation)
        return observation


@pytest.mark.parametrize("as_function", [False, True], ids=["predict", "function"])
@pytest.mark.parametrize("kind", Counter.spaces)
def test_other_policies_see_the_environments_own_observations(kind, as_function):
    """Not flattened, and in the type of the space, as networks of other libraries expect."""
    watcher, env = Watcher(), Recording(kind)
    evaluate(watcher.__call__ if as_function else watcher, env, episodes=4)
    assert repr(watcher.shown) == repr(env.given)
    assert len(watcher.shown) > 4
    if kind == "dict":
        seed = watcher.shown[0]["more"]["seed"]
        assert (seed.shape, seed.dtype) == ((1, 1), np.float32)
    elif kind != "discrete":
        assert {observation.dtype for observation in watcher.shown} == {env.observation_space.dtype}


def test_an_observation_that_is_overwritten_later_stays_as_it_was_shown():
    class Reusing(Counter):
        """Writes every observation into the same array, as some simulators do."""

        array = np.zeros(2, np.float32)

        def observation(self):
            self.array[:] = super().observation()
            return self.array

    watcher = Watcher()
    evaluate(watcher, Reusing(), episodes=4)
    steps = [observation[0] for observation in watcher.shown]
    assert steps.count(0) == 4
    assert len(set(steps)) > 1
