"""A choice between a wager and a sure reward."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Wager(gym.Env):
    """One step: action 1 pays 1 plus or minus 2, action 0 pays 0.5 for sure."""

    observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        reward = 1 + 2 * float(self.np_random.choice([-1, 1])) if action else 0.5
        return np.zeros(1, np.float32), reward, True, False, {}
