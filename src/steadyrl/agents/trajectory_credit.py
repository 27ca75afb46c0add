"""Credit for whole episodes: all steps of an episode are credited with the utility of its return.

`RiskCritic` credits steps with what they changed in the utility to be expected, and compares returns as this does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk import Law, LawMeasure
from steadyrl.training.batch import Steps


class RememberedReturns(NamedTuple):
    """The latest returns before a batch."""

    returns: Array
    """[m]: 0 where there are fewer."""
    known: Array
    """[m]: 1, or 0 where there is no return yet."""


@dataclass(frozen=True)
class TrajectoryCredit:
    """Credits all steps of an episode with u(R), without a baseline. A pytree, in place of a `RiskCritic`."""

    measure: Leaf[LawMeasure]
    discount: Leaf[float]
    """Of the return whose risk is measured."""
    returns_remembered: int

    def init(self, key: Array) -> RememberedReturns:
        """No returns yet."""
        none_yet = jnp.zeros(self.returns_remembered)
        return RememberedReturns(none_yet, none_yet)

    def readiness(self, state: RememberedReturns) -> Array:
        """All of the risk counts from the start."""
        return jnp.ones(())

    def advantages(self, state: RememberedReturns, steps: Steps) -> Array:
        """[K, T]: the utility of the return of each episode, by the law of the others and of remembered returns."""
        returns = steps.returns(self.discount)
        utility: Any = jax.vmap(self.measure.utility)
        credit: Array = steps.rows.spread(utility(returns, laws_of_others(returns, *state)))[:, None] * steps.mask
        return credit

    def fit(self, state: RememberedReturns, steps: Steps) -> tuple[RememberedReturns, Array]:
        """With the returns of the batch; there is nothing to fit, and so no loss."""
        return RememberedReturns(*remember(steps.returns(self.discount), *state)), jnp.float32(0)


register_pytree(TrajectoryCredit)


def laws_of_others(returns: Array, remembered: Array, known: Array) -> Law:
    """For each of n episodes the law of all returns but its own, and of m remembered ones: [n, n + m] each."""
    n = returns.size
    values = jnp.concatenate([returns, remembered])
    mass = jnp.concatenate([1 - jnp.eye(n), jnp.broadcast_to(known, (n, known.size))], axis=-1)
    return Law(jnp.broadcast_to(values, mass.shape), mass / mass.sum(axis=-1, keepdims=True))


def remember(returns: Array, remembered: Array, known: Array) -> tuple[Array, Array]:
    """The latest m returns, the most recent first, and which of them are known."""
    m = remembered.size
    return jnp.concatenate([returns, remembered])[:m], jnp.concatenate([jnp.ones(returns.size), known])[:m]
