"""Which lambda each episode of a round is played with, where one policy learns for a whole range of them.

A round is a number of groups of episodes, and each group has a lambda of its own. Policies and critics see its level,
log(1 + lambda), as one more input; lambdas are spread evenly over levels. The first and the last group are at the ends
of the range in every round. The others are in strata between them, at a place that moves on by the golden ratio from
round to round, so that any few rounds in a row cover a stratum evenly. So a lambda depends on the number of the round
and on the group alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.pytree import Leaf, register_pytree

GOLDEN = 2654435769
"""2^32 over the golden ratio: multiples of it, modulo 2^32, are spread evenly."""


@dataclass(frozen=True)
class Dial:
    """A range of lambdas, and how many groups of episodes play with different ones. A pytree."""

    low: Leaf[float]
    high: Leaf[float]
    groups: int
    """At least 3: two ends, and at least one stratum in between."""

    def levels(self, k: Any) -> Array:
        """[groups]: the level of each group in round `k`, ascending."""
        low, high = jnp.log1p(jnp.asarray(self.low, jnp.float32)), jnp.log1p(jnp.asarray(self.high, jnp.float32))
        moved = jnp.asarray(k, jnp.uint32) * jnp.uint32(GOLDEN)
        # 24 of the 32 bits: the precision of a float32.
        within = (moved >> 8).astype(jnp.float32) * jnp.float32(2**-24)
        strata = self.groups - 2
        places = jnp.concatenate([jnp.zeros(1), (jnp.arange(strata) + within) / strata, jnp.ones(1)])
        # Not low + places * (high - low), which may end a rounding beside the upper end.
        return (1 - places) * low + places * high

    def group_of(self, episodes: int) -> Array:
        """[episodes]: the group of each."""
        return jnp.arange(episodes) // (episodes // self.groups)

    def by_group(self, x: Array) -> Array:
        """[n, ...] to [groups, n / groups, ...]: the episodes of each group."""
        return x.reshape(self.groups, -1, *x.shape[1:])


register_pytree(Dial)


def lambda_at(level: Array) -> Array:
    """The lambda of a level."""
    return jnp.expm1(level)


def level_of(risk_aversion: float) -> float:
    """What policies and critics see of a lambda."""
    return float(np.log1p(risk_aversion))


def round_levels(algorithm: Any, k: int, episodes: int) -> np.ndarray | None:
    """[episodes]: the level of each episode of round `k`; None for an algorithm without a dial."""
    dial = dial_of(algorithm)
    return None if dial is None else np.repeat(np.asarray(_levels(dial, k)), episodes // dial.groups)


def dial_of(algorithm: Any) -> Dial | None:
    """The dial of an algorithm that has one."""
    dial: Dial | None = getattr(algorithm, "dial", None)
    return dial


_levels = jax.jit(Dial.levels)
