"""A warning at the end of training when an action that never changes would count as better."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TransformReward

from steadyrl.agents import MeanGini, constant_actions


class Choice(gym.Env):
    """Action 0 pays 5, or what is asked for; any other a random number around 0. `endless` actions never end."""

    observation_space = Box(-1, 1, (1,))

    def __init__(self, pays=5.0, actions=3, endless=False):
        self.pays, self.action_space, self.endless = pays, Discrete(actions), endless

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        reward = self.pays if action == 0 else self.np_random.normal()
        return np.zeros(1, np.float32), reward, not (self.endless and action == 0), False, {}


def agent_with(env, mean, deviation, episodes=5000):
    """An agent whose training ended with these metrics."""
    agent = MeanGini(env, hidden=(4,), risk_aversion=0.5)
    agent.episodes = agent.timesteps = episodes
    record = {"return": mean, "gini_deviation": 0.0, "undiscounted_gini_deviation": deviation, "length": 1.0}
    agent.history = [record] * 3
    return agent


def test_it_warns():
    agent = agent_with(Choice(), mean=1.0, deviation=2.0)
    with pytest.warns(UserWarning, match=r"action 0 in every step scores 5 .* policy 0\. Lower risk_aversion"):
        agent.check_trained()


@pytest.mark.parametrize("offset", [-100.0, 100.0])
def test_the_size_of_rewards_does_not_matter(offset):
    env = TransformReward(Choice(), lambda reward: reward + offset)
    with pytest.warns(UserWarning, match="action 0 in every step"):
        agent_with(env, mean=1.0 + offset, deviation=2.0).check_trained()


@pytest.mark.parametrize(
    ("env", "mean", "deviation", "episodes"),
    [
        pytest.param(Choice(), 5.0, 0.1, 5000, id="as good"),
        pytest.param(Choice(), 4.9, 0.2, 5000, id="nearly as good: it explores"),
        pytest.param(Choice(), 1.0, 2.0, 100, id="hardly trained"),
        pytest.param(Choice(endless=True), 1.0, 2.0, 5000, id="does not end"),
        pytest.param(Choice(pays=-1.0), 1.0, 2.0, 5000, id="worse"),
    ],
)
def test_it_does_not_warn(env, mean, deviation, episodes):
    agent_with(env, mean, deviation, episodes).check_trained()


def test_learn_ends_with_the_check(monkeypatch):
    checked = []
    monkeypatch.setattr("steadyrl.agents.mean_gini.warn_if_a_constant_action_is_better", checked.append)
    agent = MeanGini("steadyrl/GuardedMaze-v0").learn(total_episodes=50, progress_bar=False)
    assert checked == [agent]


def test_actions_are_spread_over_the_space():
    some = constant_actions._some_actions
    assert [int(a) for a in some(Discrete(3, start=2))] == [2, 3, 4]
    assert [int(a) for a in some(Discrete(101))] == [0, 25, 50, 75, 100]
    assert [a.tolist() for a in some(Box(-2, 4, (2,)))] == [[-2, -2], [1, 1], [4, 4]]
    assert np.isfinite(some(Box(-np.inf, np.inf, (1,)))).all()
