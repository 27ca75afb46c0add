"""Q-learning at every step: the update by hand, exploration, and what it learns with its defaults."""

import gymnasium as gym
import numpy as np
import pytest
from interrupted_runs import Killed

import steadyrl
from steadyrl.agents import QLearning
from steadyrl.agents.networks import EpsilonGreedyTable, QTable
from steadyrl.agents.q_learning import QLearningSettings


class Corridor(gym.Env):
    """States 0 to 3; action 1 goes right, 0 stays; the last state pays 1 and ends. Keeps a diary."""

    observation_space, action_space = gym.spaces.Discrete(4), gym.spaces.Discrete(2)

    def __init__(self, truncates=False):
        self.truncates, self.diary = truncates, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action):
        before, self.state = self.state, self.state + int(action)
        over = self.state == 3
        self.diary.append((before, int(action), float(over), self.state, over and not self.truncates))
        return self.state, float(over), over and not self.truncates, over and self.truncates, {}


@pytest.mark.parametrize("truncates", [False, True])
def test_each_step_is_learned_from_before_the_next(truncates):
    env = Corridor(truncates)
    agent = QLearning(env, gamma=0.9, q_learning_rate=0.5, seed=1).learn(total_episodes=20, progress_bar=False)
    Q = np.zeros((4, 2))
    for state, action, reward, following, terminal in env.diary:
        target = reward if terminal else reward + 0.9 * Q[following].max()
        Q[state, action] += 0.5 * (target - Q[state, action])
    np.testing.assert_allclose(agent.learner.theta, Q, rtol=1e-5)
    assert agent.timesteps == len(env.diary)
    assert agent.history[-1]["updates"] == pytest.approx(len(env.diary) / 20)


def test_actions_follow_what_the_same_episode_has_taught():
    """In the first episode nothing pays but the end: the second one goes there without a detour, but for epsilon."""
    env = Corridor()
    agent = QLearning(env, gamma=0.9, q_learning_rate=1.0, exploration=0.0, seed=0)
    agent.learn(total_episodes=4, progress_bar=False)
    assert [step[1] for step in env.diary[-3:]] == [1, 1, 1]


def test_exploration_falls():
    settings = QLearningSettings(exploration=0.2, final_exploration=0.1, exploration_steps=100)
    assert [settings.exploration_at(t) for t in (0, 50, 100, 10_000)] == pytest.approx([0.2, 0.15, 0.1, 0.1])
    policy, rng = EpsilonGreedyTable(4), np.random.default_rng(0)
    table = QTable(np.array([[0, 2, 2, 1.0]]), 0.4)
    actions = policy.act(table, np.zeros(20_000, int), policy.noise(rng, 20_000))
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / 20_000, [0.1, 0.4, 0.4, 0.1], atol=0.015)
    assert policy.act(table, np.zeros(3, int), None).tolist() == [1, 1, 1]


def test_a_run_that_was_killed_goes_on_bit_for_bit(tmp_path):
    def trained(out, callback=None):
        agent = QLearning("FrozenLake-v1", seed=5)
        return agent.learn(total_episodes=300, out=out, callback=callback, progress_bar=False)

    def kill(local, world):
        if local["self"].episodes == 150:
            raise Killed

    whole = trained(tmp_path / "whole")
    with pytest.raises(Killed):
        trained(tmp_path / "killed", kill)
    resumed = trained(tmp_path / "killed")
    np.testing.assert_array_equal(resumed.learner.theta, whole.learner.theta)
    assert resumed.timesteps == whole.timesteps


def test_the_papers_form_is_compiled_and_learns_after_episodes():
    agent = QLearning("steadyrl/GuardedMaze-v0", episodes_per_update=5)
    assert (agent.engine, agent.settings.n, agent.algorithm.batch_kind) == ("compiled", 5, "transitions")
    assert QLearning("steadyrl/GuardedMaze-v0", update_after="step").engine == "gymnasium"
    assert QLearning("FrozenLake-v1").settings.update_after == "step"
    with pytest.raises(ValueError, match="update_after"):
        steadyrl.MVPI("steadyrl/GuardedMaze-v0", update_after="step")
