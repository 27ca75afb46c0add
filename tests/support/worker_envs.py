"""Environments for worker processes, which write into a folder what happens to them. Imports little."""

import os
import signal
import time
from pathlib import Path

import gymnasium as gym
import numpy as np


class Drift(gym.Env):
    """A random walk of a few steps, pushed by the action: any rounding of an action shows in what follows."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,))
    action_space = gym.spaces.Box(-1, 1, (2,))

    def __init__(self, folder=None):
        self.folder = folder

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.x = int(self.np_random.integers(2, 12)), self.np_random.normal(size=3)
        self.seed = seed
        return self.x.astype(np.float32), {}

    def step(self, action):
        self.left -= 1
        self.x = np.sin(3 * self.x) + self.np_random.normal(size=3) / 10 + np.sum(action)
        metrics = {"episode_metrics": {"end_rate": float(self.x[0])}} if self.left == 0 else {}
        return self.x.astype(np.float32), float(self.x[1]), False, self.left == 0, metrics

    def close(self):
        if self.folder:
            (Path(self.folder) / f"closed {os.getpid()}").touch()


class Mortal(Drift):
    """Its process is killed in episodes from `seed`, so many times; the number is kept in a folder."""

    def __init__(self, folder, seed, deaths):
        super().__init__()
        self.folder, self.mortal, self.deaths = folder, seed, deaths

    def step(self, action):
        if self.seed == self.mortal:
            died = Path(self.folder) / "deaths"
            count = len(died.read_text()) if died.exists() else 0
            if count < self.deaths:
                died.write_text("x" * (count + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Fated(Mortal):
    """The next letter of a text is the fate of each process: s is killed at the start, e in the episode from `seed`."""

    def __init__(self, folder, seed, fates):
        super().__init__(folder, seed, 0)
        file = Path(folder) / "started"
        number = len(file.read_text()) if file.exists() else 0
        fate = fates[number] if number < len(fates) else fates[-1]
        file.write_text("x" * (number + 1))
        self.deaths = 99 if fate == "e" else 0
        if fate == "s":
            os.kill(os.getpid(), signal.SIGKILL)


class Endless(Drift):
    """Writes its process number into the folder, and never returns from a step."""

    def step(self, action):
        (Path(self.folder) / str(os.getpid())).touch()
        while True:
            time.sleep(0.01)


def unlicensed(error=None):
    """Cannot be created."""
    raise error or RuntimeError("no licence")


def ends_its_process():
    """Has no chance to say why."""
    os._exit(4)
