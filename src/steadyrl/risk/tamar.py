"""Tamar's penalty: (max(0, V - threshold))^2, with running estimates of mean and variance (Tamar et al. 2012)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from steadyrl.risk.measure import RiskMeasure, Sample
from steadyrl.risk.variance import variance


class RunningMoments(NamedTuple):
    """J and V: the running estimates of E[G0] and V[G0]."""

    mean: Any
    variance: Any


@cache  # Equal numbers give the same measure, so that programs are compiled for it once.
def tamar(threshold: float, learning_rate: float, mean: float = 0.0, spread: float = 0.0) -> RiskMeasure:
    """The penalty above `threshold`; J and V start at `mean` and `spread` and move by `learning_rate` each batch.

    weight_i = -2 max(0, V - threshold) (R_i^2 - 2 J R_i), averaged over the batch, with J and V as they were before
    it; then J += a (R - J) and V += a (R^2 - J^2 - V), both from the old J and V.
    """

    def weights(sample: Sample, state: RunningMoments) -> tuple[Any, RunningMoments]:
        R, J, V = sample.returns, *state
        n = sample.count.clip(1)
        w = -2 * jnp.maximum(V - threshold, 0) * (R**2 - 2 * J * R) * sample.where / n
        moved = RunningMoments(
            mean=J + learning_rate * jnp.sum((R - J) * sample.where) / n,
            variance=V + learning_rate * jnp.sum((R**2 - J**2 - V) * sample.where) / n,
        )
        return w, moved

    return RiskMeasure(
        value=lambda returns: (variance(returns) - threshold).clip(0) ** 2,
        weights=weights,
        # Plain numbers: a measure is hashed when an agent's program is compiled, and arrays have no hash.
        initial_state=RunningMoments(float(mean), float(spread)),
        least_episodes=1,
    )
