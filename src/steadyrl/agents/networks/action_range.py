"""Real-valued actions between bounds, and the units that policies count them in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class ActionRange:
    """Where every dimension has two bounds, actions are counted in halves of their range from its middle.

    So they mean the same in every environment: -1 and 1 are the bounds. Elsewhere they are counted as they are.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    """Of an action as the environment takes it; here actions are flat."""
    dtype: str
    """Of an action as the environment takes it."""

    @classmethod
    def of(cls, space: gym.spaces.Box) -> ActionRange:
        """The range of an action space."""
        low, high = (tuple(map(float, bound.ravel())) for bound in (space.low, space.high))
        return cls(low, high, space.shape, str(space.dtype))

    @cached_property
    def dimensions(self) -> int:
        """How many numbers an action is."""
        return len(self.low)

    @cached_property
    def bounded(self) -> bool:
        """Whether every dimension has both bounds."""
        return all(map(math.isfinite, self.low + self.high))

    def to_space(self, actions: Any) -> Any:
        """Clipped to the bounds, in the space's units, shape and precision; in NumPy or in JAX."""
        low, high, middle, half_range = self._bounds
        if self.bounded:
            actions = middle + half_range * actions
        if isinstance(actions, jax.Array):  # In 32 bits also where the space has 64.
            return jnp.clip(actions, low, high).reshape(-1, *self.shape)
        clipped = np.minimum(np.maximum(actions, low), high)
        return clipped.reshape(-1, *self.shape).astype(self.dtype, copy=False)

    @cached_property
    def _bounds(self) -> tuple[Any, Any, Any, Any]:
        """Low, high, and where all are finite the middle and half of the range, in the space's precision."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        middle, half_range = ((low + high) / 2, (high - low) / 2) if self.bounded else (low, high)
        low, high, middle, half_range = (x.astype(self.dtype) for x in (low, high, middle, half_range))
        return low, high, middle, half_range
