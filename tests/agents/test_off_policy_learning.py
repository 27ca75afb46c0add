"""DQN and TD3 learn problems whose answers are known."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import TimeLimit

from steadyrl.agents import DQN, TD3

pytestmark = [pytest.mark.slow, pytest.mark.optimized, pytest.mark.usefixtures("numpys_layers")]


class Corridor(gym.Env):
    """Five cells; leaving to the right pays 1, each step to the left 0.02. Starts anywhere."""

    observation_space = Dict({"cell": Discrete(6), "more": Box(0, 1, (1,))})
    action_space = Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(5))
        return self.observation(self.cell), {}

    def step(self, action):
        move = int(action) - 6
        self.cell = max(0, self.cell + move)
        reward = 1.0 if self.cell == 5 else 0.02 if move == -1 else 0.0
        return self.observation(self.cell), reward, self.cell == 5, False, {}

    @staticmethod
    def observation(cell):
        return {"cell": cell, "more": np.zeros(1, np.float32)}


def test_dqn_finds_the_way_out_and_its_value():
    """0.9^k, k steps from the last cell: left pays at once but is worth less, and nothing comes after the exit."""
    settings = {"hidden": (32,), "gamma": 0.9, "learning_rate": 5e-3, "batch_size": 64, "exploration_final_eps": 1.0}
    settings |= {"learning_starts": 400, "train_freq": 10, "gradient_steps": 30, "target_update_interval": 10}
    agent = DQN(lambda: TimeLimit(Corridor(), 40), seed=0, **settings)
    agent.learn(800, progress_bar=False)
    cells = [Corridor.observation(cell) for cell in range(5)]
    assert [int(agent.predict(cell)[0]) for cell in cells] == [7] * 5
    rows = np.eye(7, dtype=np.float32)[:5]
    values = agent.algorithm.policy.mlp.apply_numpy(agent.actor().parameters.layers, rows)
    np.testing.assert_allclose(values.max(axis=1), 0.9 ** np.arange(4, -1, -1), atol=0.08)


class Echo(gym.Env):
    """Each step asks for an action, 0.5 or 2, and pays for the one before: less by the square of half its error.

    At once it pays a twentieth of the action, so a step is best at 1 / (10 gamma) above what it asks for.
    """

    observation_space, action_space = Box(-9, 9, (2,)), Box(-1, 3, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.debt = 0.0
        return self.observation(), {}

    def step(self, action):
        reward = float(action[0]) / 20 - self.debt
        self.debt = ((float(action[0]) - (2.0 if self.asked else 0.5)) / 2) ** 2
        return self.observation(), reward, False, False, {}

    def observation(self):
        self.asked = int(self.np_random.integers(2))
        return np.float32([self.asked, self.debt])


def test_td3_finds_the_best_action_of_a_range():
    """The highest action pays most at once: only what comes after tells that another is better."""
    settings = {"hidden": (64,), "gamma": 0.8, "learning_rate": 3e-3, "batch_size": 64, "tau": 0.02}
    settings |= {"learning_starts": 500, "train_freq": 20, "gradient_steps": 60}
    agent = TD3(lambda: TimeLimit(Echo(), 100), seed=0, **settings)
    agent.learn(1500, progress_bar=False)
    asked = np.float32([[0, 0.1], [1, 0.1]])
    np.testing.assert_allclose(agent.predict(asked)[0][:, 0], [0.625, 2.125], atol=0.3)
