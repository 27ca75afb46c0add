"""Environments whose every number is known beforehand. Imports little: other processes load it too."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import TimeLimit

LONG, SHORT = 20, 1


class Gamble(gym.Env):
    """A coin decides between a short episode that pays 1 and a long one that pays 20."""

    observation_space, action_space = Discrete(1), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = LONG if self.np_random.random() < 0.5 else SHORT
        return 0, {}

    def step(self, action):
        self.left -= 1
        return 0, 1.0, self.left == 0, False, {}


class Counter(gym.Env):
    """Counts steps. The seed decides on the length, 1 to 4, and on the end: even seeds terminate, odd are truncated.

    A step pays its number plus a tenth of the action. Observations hold the number of steps and the seed.
    """

    action_space = Discrete(3)
    spaces = {  # noqa: RUF012
        "box": Box(-np.inf, np.inf, (2,), np.float32),
        "image": Box(0, 255, (2, 1), np.uint8),
        "discrete": Discrete(6, start=-1),
        "dict": Dict({"steps": Box(0, 9, (1,)), "odd": Discrete(2), "more": Dict({"seed": Box(0, 99, (1, 1))})}),
    }

    def __init__(self, kind="box"):
        self.kind, self.observation_space = kind, self.spaces[kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = 0 if seed is None else seed, 0
        return self.observation(), {}

    def step(self, action):
        self.t += 1
        over = self.t == length(self.seed)
        facts = {"facts": {"seed_rate": float(self.seed)}} if over else {}
        reward = self.t - 1 + float(action) / 10
        return self.observation(), reward, over and self.seed % 2 == 0, over and self.seed % 2 == 1, facts

    def observation(self):
        if self.kind == "discrete":
            return self.t - 1
        if self.kind == "dict":
            seed = np.full((1, 1), self.seed, np.float32)
            return {"steps": np.array([self.t], np.float32), "odd": self.seed % 2, "more": {"seed": seed}}
        space = self.observation_space
        return np.array([self.t, self.seed]).astype(space.dtype).reshape(space.shape)


def length(seed):
    return seed % 4 + 1


class Walk(gym.Env):
    """Ends after 2 to 5 steps, as the seed says, or more. A step pays its number and a tenth of the action's sum.

    Observations are tenths of the number of steps, and a mark of the episode.
    """

    observation_space = Box(0, 99, (2,))

    def __init__(self, action_space, more=0):
        self.action_space, self.more = action_space, more

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        number = 0 if seed is None else seed
        self.length, self.mark, self.t = number % 4 + 2 + self.more, number % 97 / 97, 0
        return self.observation(), {}

    def step(self, action):
        self.t += 1
        return self.observation(), self.t + float(np.sum(action)) / 10, self.t == self.length, False, {}

    def observation(self):
        return np.array([self.t / 10, self.mark], np.float32)


NUMBERS = Discrete(3, start=5)
BOX = Box(np.float32([[-1, 0], [2, -3]]), np.float32([[1, 10], [4, -1]]))
LIMIT = 4


def walk(action_space):
    """A walk with a time limit, which one of four reaches that would go on; another one ends there of its own."""
    return TimeLimit(Walk(action_space), LIMIT)


COMMON = {"hidden": (8,), "gamma": 0.9, "learning_rate": 0.01, "batch_size": 4, "buffer_size": 20}
COMMON |= {"learning_starts": 6, "train_freq": 3}
TINY = {
    "dqn": (NUMBERS, {**COMMON, "target_update_interval": 5, "exploration_steps": 40}),
    "td3": (BOX, COMMON),
}
"""The actions of walks, and settings to learn in them: the same wherever they do, for any others would be compiled."""


class Diary(gym.Wrapper):
    """Writes down every step: observation, action, reward, next observation, terminated, truncated."""

    def __init__(self, env):
        super().__init__(env)
        self.pages = []

    def reset(self, **kwargs):
        self.seen, info = self.env.reset(**kwargs)
        return self.seen, info

    def step(self, action):
        after, *rest = self.env.step(action)
        self.pages.append((self.seen, action, rest[0], after, rest[1], rest[2]))
        self.seen = after
        return after, *rest


class Faulty(gym.Env):
    """Episodes of 5 steps; those from `wrong_seed` are faulty in `what` at step `at`; reset is step 0."""

    action_space = Discrete(2)

    def __init__(self, what, at=3, space=None, wrong_seed=7):
        self.what, self.at, self.wrong_seed = what, at, wrong_seed
        self.observation_space = space or Box(-np.inf, np.inf, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.wrong, self.t = seed == self.wrong_seed, 0
        return self.moment()[0], {}

    def step(self, action):
        self.t += 1
        observation, reward = self.moment()
        return observation, reward, self.t == 5 and self.what != "no end", False, {}

    def moment(self):
        observation = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        if not (self.wrong and self.t == self.at):
            return observation, 0.0
        if self.what == "exception":
            raise KeyError("broken sensor")
        rewards = {"nan reward": np.nan, "infinite reward": -np.inf, "no number": "much"}
        observations = {
            "nan observation": np.array([0, np.nan], np.float32),
            "infinite observation": np.array([np.inf, -np.inf], np.float32),
            "shape": np.zeros(3, np.float32),
            "scalar": np.float32(0),
            "outside": np.int64(-1),
        }
        return observations.get(self.what, observation), rewards.get(self.what, 0.0)
