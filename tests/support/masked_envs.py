"""Environments that mask actions, and fail if one is taken that is not allowed. Imports little."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

ACTIONS = 4
STEPS = 6


class Tiles(gym.Env):
    """Each step allows two or three of four actions; the larger the action, the larger the reward.

    `way` is how masks are reported: "info", "method", or "none at all" if no action is allowed at step 3.
    """

    action_space = Discrete(ACTIONS, start=3)

    def __init__(self, way="info", tabular=False):
        self.way, self.tabular = way, tabular
        self.observation_space = Discrete(STEPS + 1) if tabular else Box(0, 1, (2,))
        if tabular:
            self.action_space = Discrete(ACTIONS)
        if way == "method":
            self.action_masks = lambda: self.mask

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe()

    def step(self, action):
        number = int(action) - int(self.action_space.start)
        assert self.mask[number], f"action {action} is not allowed"
        self.t += 1
        observation, info = self.observe()
        return observation, float(number), self.t == STEPS, False, info

    def observe(self):
        allowed = self.np_random.permutation(ACTIONS)[: self.np_random.integers(2, 4)]
        self.mask = np.isin(np.arange(ACTIONS), allowed)
        if self.way == "none at all" and self.t == 3:
            self.mask = np.zeros(ACTIONS, bool)
        info = {"action_mask": self.mask.astype(np.int8)} if self.way != "method" else {}
        observation = np.int64(self.t) if self.tabular else np.array([self.t / STEPS, 1], np.float32)
        return observation, info


class Pairs(gym.Env):
    """Two choices at once: the second of three is never allowed for the first, and one changes for the other."""

    observation_space, action_space = Box(0, 1, (1,)), MultiDiscrete([3, 2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe()

    def step(self, action):
        assert self.mask[action[0]], action
        assert self.mask[3 + action[1]], action
        self.t += 1
        return *self.observe()[:1], float(action.sum()), self.t == STEPS, False, {"action_mask": self.mask}

    def observe(self):
        last = int(self.np_random.integers(2))
        self.mask = np.array([1, 0, 1, last == 0, True], bool)
        return np.float32([last]), {"action_mask": self.mask}


def tiles_by_method():
    return Tiles("method")


def tabular_tiles():
    return Tiles(tabular=True)


def taxi():
    """Gymnasium's taxi with a short time limit; a wrapper fails if an action is masked."""
    return Guard(gym.make("Taxi-v4", max_episode_steps=20))


class Guard(gym.Wrapper):
    """Fails if an action is taken that the last info did not allow."""

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        self.mask = info["action_mask"]
        return observation, info

    def step(self, action):
        assert self.mask[action], f"action {action} is not allowed"
        observation, *rest, info = self.env.step(action)
        self.mask = info["action_mask"]
        return observation, *rest, info
