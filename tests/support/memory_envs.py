"""Environments in which a policy has to remember. Imports little: other processes load it too."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete


class Recall(gym.Env):
    """The first observation is -1 or 1, later ones are 0; the last action pays 1 if it is the sign of the first.

    Episodes have 2 to `most` steps. Without memory, half of them are the best that can be had.
    """

    observation_space = Box(-10, 10, (1,))
    spaces = {  # noqa: RUF012
        "choice": Discrete(2),
        "choices": MultiDiscrete([2, 3]),
        "number": Box(-1, 1, (1,)),
    }

    def __init__(self, kind="choice", most=6):
        self.action_space, self.most = self.spaces[kind], most

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue, self.left = 2 * int(self.np_random.integers(2)) - 1, int(self.np_random.integers(2, self.most + 1))
        return np.float32([self.cue]), {}

    def step(self, action):
        self.left -= 1
        right = (np.ravel(action)[0] > 0) == (self.cue > 0)
        return np.zeros(1, np.float32), float(right and self.left == 0), self.left == 0, False, {}


class Noisy(Recall):
    """Observations after the first are random, so that every step changes what is remembered."""

    def step(self, action):
        _, *rest = super().step(action)
        return self.np_random.normal(size=1).astype(np.float32), *rest


def cart_without_velocities():
    """CartPole in which only the positions of cart and pole are observed."""
    env = gym.make("CartPole-v1")
    seen = Box(env.observation_space.low[::2], env.observation_space.high[::2])
    return gym.wrappers.TransformObservation(env, lambda observation: observation[::2], seen)
