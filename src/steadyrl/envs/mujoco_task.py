"""What makes a task of a MuJoCo model: how episodes start, what is seen, paid and counted. For k episodes at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np


def check_from_0_up(options: Any, *names: str) -> None:
    """An error if one of these options of a task is negative or no finite number."""
    for name in names:
        value = getattr(options, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name}={value}: give a number from 0 up.")


class State(NamedTuple):
    """Where the joints of k episodes are, and how fast they move."""

    qpos: Any
    """[k, nq]."""
    qvel: Any
    """[k, nv]."""


class Outcome(NamedTuple):
    """What a step of k episodes came to, before noise."""

    rewards: Any
    """[k]."""
    terminated: Any
    """[k] bool."""
    in_noisy_region: Any
    """[k] bool: whether the step ended where rewards are noisy."""
    noise_scale: Any
    """[k], or one number for all: what the draw from N(0, 1) of a step in the noisy region is multiplied by."""


class MujocoTask(Protocol):
    """Pure functions of arrays, so that one episode in Gymnasium and many side by side are the same task."""

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """What an episode's start adds to the model's own positions [nq] and velocities [nv]."""
        ...

    def observe(self, state: State) -> Any:
        """[k, d]: what the agent sees; an array of its own."""
        ...

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> Outcome:
        """Of a step that took `seconds`."""
        ...

    def facts(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """Name -> [k]: of episodes in `state` after `steps` [k], of which `noisy_steps` [k] ended in noise."""
        ...
