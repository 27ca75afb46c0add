"""MVP: the mean-variance objective with its square replaced by a dual variable y (Xie et al. 2018)."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp

from steadyrl.risk.measure import RiskMeasure, Sample
from steadyrl.risk.variance import variance


@cache  # Equal numbers give the same measure, so that programs are compiled for it once.
def mvp(risk_aversion: float, learning_rate: float, dual: float = 0.0, with_mean: bool = True) -> RiskMeasure:
    """Ascends 2y(E[G0] + 1/(2 lambda)) - y^2 - E[G0^2]: y first, by `learning_rate`, then the policy with the new y.

    `with_mean`: the weights 2yR - R^2 hold the mean part, since y* = E[G0] + 1/(2 lambda); the step is 1/lambda times
    that of E - lambda V. Otherwise they hold the variance alone, with y* = E[G0], for an agent that adds its own mean
    part and multiplies by lambda. `dual` is where y starts.
    """
    target = 1 / risk_aversion if with_mean else 0.0

    def weights(sample: Sample, y: Any) -> tuple[Any, Any]:
        R, n = sample.returns, sample.count.clip(1)
        y = y + learning_rate * jnp.sum((2 * R + target - 2 * y) * sample.where) / n
        return (2 * y * R - R**2) * sample.where / n, y

    return RiskMeasure(
        value=variance,
        weights=weights,
        # A plain number: a measure is hashed when an agent's program is compiled, and arrays have no hash.
        initial_state=float(dual),
        contains_mean=with_mean,
        least_episodes=1,
    )
