"""MVP: the mean-variance objective with its square replaced by a dual variable y (Xie et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk.measure import Sample
from steadyrl.risk.variance import variance


@dataclass(frozen=True)
class DualVariance:
    """Ascends 2y(E[G0] + 1/(2 lambda)) - y^2 - E[G0^2]: y first, by `learning_rate`, then the policy with the new y."""

    target: Leaf[float]
    """1 / lambda, or 0 without the mean."""
    learning_rate: Leaf[float]
    initial_state: Leaf[float]
    """Where y starts."""
    contains_mean: bool
    min_episodes: int = 1

    def value(self, returns: Any, /) -> Any:
        """The variance."""
        return variance(returns)

    def weights(self, sample: Sample, y: Any, /) -> tuple[Any, Any]:
        """2yR - R^2, averaged over the batch, with the new y."""
        R, n = sample.returns, sample.count.clip(1)
        y = y + self.learning_rate * jnp.sum((2 * R + self.target - 2 * y) * sample.where) / n
        return (2 * y * R - R**2) * sample.where / n, y


register_pytree(DualVariance)


def mvp(risk_aversion: float, learning_rate: float, dual: float = 0.0, with_mean: bool = True) -> DualVariance:
    """MVP's dual objective; `dual` is where y starts.

    `with_mean`: the weights include the mean part, since y* = E[G0] + 1/(2 lambda); the step is 1/lambda times that of
    E - lambda V. Otherwise they hold the variance alone, with y* = E[G0], for an agent that adds its own mean part and
    multiplies by lambda.
    """
    target = 1 / risk_aversion if with_mean else 0.0
    return DualVariance(target, float(learning_rate), float(dual), contains_mean=with_mean)
