"""The interface of MuJoCo tasks: initial states, observations, rewards and metrics, for k episodes at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np


def check_non_negative(options: Any, *names: str) -> None:
    """Raise an error if one of these options of a task is negative or not finite."""
    for name in names:
        value = getattr(options, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name}={value}: a finite number of at least 0 is needed.")


class State(NamedTuple):
    """The joint positions and velocities of k episodes."""

    qpos: Any
    """[k, nq]."""
    qvel: Any
    """[k, nv]."""


class StepOutcome(NamedTuple):
    """The outcome of a step of k episodes, before noise."""

    rewards: Any
    """[k]."""
    terminated: Any
    """[k] bool."""
    in_noisy_region: Any
    """[k] bool: whether the step ended in the noisy region."""
    noise_scale: Any
    """[k], or one number for all: the standard deviation of the noise of a step in the noisy region."""


class MujocoTask(Protocol):
    """Pure functions of arrays, shared by the Gymnasium environment and the batched simulator."""

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """A random offset that is added to the initial positions [nq] and velocities [nv] of the model."""
        ...

    def observe(self, state: State) -> Any:
        """[k, d]: the observations, as a new array."""
        ...

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> StepOutcome:
        """The outcome of a step of `seconds` simulated seconds."""
        ...

    def episode_metrics(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """Name -> [k]: metrics of episodes in `state` after `steps` [k], `noisy_steps` [k] of them noisy."""
        ...
