"""Tamar's penalty: (max(0, V - threshold))^2, with running estimates of mean and variance (Tamar et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp

from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk.measure import Sample
from steadyrl.risk.variance import variance


class ReturnMoments(NamedTuple):
    """J and V: the running estimates of E[G0] and V[G0]."""

    mean: Any
    variance: Any


@dataclass(frozen=True)
class VariancePenalty:
    """The penalty above `threshold`; J and V move by `learning_rate` with each batch."""

    threshold: Leaf[float]
    learning_rate: Leaf[float]
    initial_state: Leaf[ReturnMoments]
    contains_mean: bool = False
    min_episodes: int = 1

    def value(self, returns: Any, /) -> Any:
        """(max(0, V - threshold))^2 of a sample of returns."""
        return (variance(returns) - self.threshold).clip(0) ** 2

    def weights(self, sample: Sample, state: ReturnMoments, /) -> tuple[Any, ReturnMoments]:
        """-2 max(0, V - threshold) (R_i^2 - 2 J R_i), averaged over the batch, with J and V as they were before it.

        Then J += a (R - J) and V += a (R^2 - J^2 - V), both from the old J and V.
        """
        R, J, V = sample.returns, *state
        n = sample.count.clip(1)
        w = -2 * jnp.maximum(V - self.threshold, 0) * (R**2 - 2 * J * R) * sample.where / n
        moved = ReturnMoments(
            mean=J + self.learning_rate * jnp.sum((R - J) * sample.where) / n,
            variance=V + self.learning_rate * jnp.sum((R**2 - J**2 - V) * sample.where) / n,
        )
        return w, moved


register_pytree(VariancePenalty)


def tamar(threshold: float, learning_rate: float, mean: float = 0.0, spread: float = 0.0) -> VariancePenalty:
    """Tamar's penalty, with J starting at `mean` and V at `spread`."""
    return VariancePenalty(float(threshold), float(learning_rate), ReturnMoments(float(mean), float(spread)))
