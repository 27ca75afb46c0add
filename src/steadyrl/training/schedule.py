"""Learning-rate schedules: how step sizes fall while the budget of a training is used up.

The factor of a round depends on the schedule, the budget and what was done before the round, and on nothing else: so a
run that was interrupted is resumed exactly. With "constant" nothing is computed at all.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np

from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.base.settings import Settings

T = TypeVar("T")

SCHEDULES = ("constant", "linear", "cosine")
RATES = ("learning_rate", "policy_learning_rate", "value_learning_rate", "q_learning_rate")
"""The settings that a schedule scales: those of what is learned to act, and not of running estimates of risk."""
FACTOR = "learning_rate_factor"
"""The metric that records it."""


@dataclass(frozen=True)
class Schedule:
    """A schedule over a budget of `total` episodes or timesteps that begins after `first` of them.

    Compiled programs take it as an argument: another budget compiles nothing.
    """

    kind: str = "constant"
    unit: str = "episodes"
    first: Leaf[int] = 0
    total: Leaf[int] = 1

    def factor(self, done: Any, xp: Any = np) -> Any:
        """What step sizes are multiplied by after `done` episodes or timesteps: from 1 down to 0."""
        progress = xp.clip((done - self.first) / self.total, 0, 1)
        return 1 - progress if self.kind == "linear" else (1 + xp.cos(xp.pi * progress)) / 2

    def factor_of(self, episodes: int, timesteps: int) -> float | None:
        """The factor after so many of both; None if step sizes are constant."""
        if self.kind == "constant":
            return None
        return float(self.factor(episodes if self.unit == "episodes" else timesteps))


register_pytree(Schedule)
CONSTANT = Schedule()


def with_rates(algorithm: T, factor: Any) -> T:
    """The algorithm with its step sizes times a factor; the same one if that is None."""
    if factor is None:
        return algorithm

    def scale(part: Any) -> Any:
        return _scaled(part, factor) if _is_settings(part) else part

    scaled: T = jax.tree.map(scale, algorithm, is_leaf=_is_settings)
    return scaled


def _is_settings(part: Any) -> bool:
    return isinstance(part, Settings)


def _scaled(settings: Settings, factor: Any) -> Settings:
    """A copy that is not checked anew: in a compiled function numbers are tracers."""
    changed = copy.copy(settings)
    for name in RATES:
        if hasattr(changed, name):
            object.__setattr__(changed, name, getattr(changed, name) * factor)
    return changed
