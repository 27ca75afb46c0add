"""Runs and records for the tests of loggers."""

from steadyrl import MeanGini
from steadyrl.training.loggers import RunInfo

MAZE = "steadyrl/GuardedMaze-v0"
TRAIN = ["train", MAZE, "--episodes", "150", "--no-progress", "--tensorboard", "--out"]
CONFIG = {"agent": "mg", "env": {"id": MAZE, "options": {}}, "settings": {"gamma": 0.9, "hidden": (8, 8)}, "seed": 3}
COUNTERS = {"iteration", "episodes", "timesteps", "time"}


def maze(seed=0):
    return MeanGini(MAZE, seed=seed)


def record(episodes, **metrics):
    counters = {"iteration": 1, "episodes": episodes, "timesteps": 10 * episodes, "time": 1.5}
    return {**counters, "return": 2.0 * episodes, **metrics}


def info(folder=None):
    return RunInfo("maze", folder, CONFIG)


class Recorder:
    """A logger of somebody's own."""

    def __init__(self):
        self.events = []

    def log(self, record):
        self.events.append(record["episodes"])

    def close(self):
        self.events.append("closed")


class StartedRecorder(Recorder):
    def start(self, info):
        self.events.append(info)


def interrupt_after(episodes, error=KeyboardInterrupt):
    def callback(local, world):
        if local["self"].episodes >= episodes:
            raise error

    return callback
