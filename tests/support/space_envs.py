"""Small environments whose observations say which action pays, in spaces of all kinds. Imports little."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

STEPS = 5


class Repeat(gym.Env):
    """Shows a target in each step, and pays 1 for each part of the action that equals it; episodes have 5 steps."""

    def __init__(self, action_space, observation_space=None):
        self.action_space = action_space
        self.observation_space = action_space if observation_space is None else observation_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.action_space.seed(int(self.np_random.integers(2**31)))
        self.t = 0
        return self.shown(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        reward = float(np.sum(action == self.target))
        self.t += 1
        return self.shown(), reward, self.t == STEPS, False, {}

    def shown(self):
        self.target = self.action_space.sample()
        return self.target


def switches():
    """MultiBinary actions and observations."""
    return Repeat(MultiBinary(3))


def dials():
    """MultiDiscrete actions and observations, of different sizes and from different numbers."""
    return Repeat(MultiDiscrete([2, 4], start=[0, -1]))


class Nested(Repeat):
    """The target is inside of a Tuple inside of a Dict, beside numbers that say nothing."""

    def __init__(self):
        inner = Tuple((MultiDiscrete([2, 3]), Box(-1, 1, (2,)), Discrete(3, start=1)))
        super().__init__(MultiDiscrete([2, 3]), Dict({"b": inner, "a": MultiBinary(2)}))

    def shown(self):
        target = super().shown()
        noise = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"a": np.int8([1, 0]), "b": (target, noise, np.int64(1 + self.np_random.integers(3)))}


class Bright(gym.Env):
    """An image with a bright half, left or right: an action that names it pays 1. Episodes have 5 steps."""

    action_space = Discrete(2)

    def __init__(self, shape=(36, 36)):
        self.observation_space = Box(0, 255, shape, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.image(), {}

    def step(self, action):
        reward = float(action == self.side)
        self.t += 1
        return self.image(), reward, self.t == STEPS, False, {}

    def image(self):
        self.side = int(self.np_random.integers(2))
        shape = self.observation_space.shape
        width = 1 if len(shape) == 2 or shape[0] > shape[-1] else 2
        image = np.moveaxis(self.np_random.integers(0, 100, shape, np.uint8), width, 0)
        half = len(image) // 2
        image[half * self.side : half * (self.side + 1)] += 150
        return np.moveaxis(image, 0, width)


class Steer(Bright):
    """The same with a number as the action: above 0 for right."""

    action_space = Box(-1, 1, (1,))

    def step(self, action):
        return super().step(int(action[0] > 0))
