"""Variance, and its policy gradient by double sampling (MVO, Eqs. 2-3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.risk.measure import RiskMeasure, Sample
from steadyrl.risk.sample import as_mass, as_returns


def variance(returns: Any) -> Any:
    """The sample variance over the last axis, dividing by n - 1."""
    xp, R = as_returns(returns)
    return xp.var(R, axis=-1, ddof=1)


def standard_deviation(returns: Any) -> Any:
    """The square root of `variance`."""
    xp, R = as_returns(returns)
    return xp.std(R, axis=-1, ddof=1)


def double_sampling_weights(returns: Any, where: Any = None, ratios: Any = None) -> Any:
    """-grad V = E[sum_i rho_i weight_i score_i] / n: one half of the batch estimates E[G0], the other its gradient.

    grad V = grad E[R^2] - 2 E[R] grad E[R]. The product of two expectations needs two independent samples: the
    first half A (by position, deviation 10: never pass sorted returns) gives J_A = mean of rho R, the second half B the
    gradient.
    weight_i = -(R_i^2 - [i in B] (n / n_B) 2 J_A R_i), with all numbers counting the selected.
    """
    xp, R = as_returns(returns)
    selected = as_mass(xp, R, where)
    rho = as_mass(xp, R, where, ratios)
    n = R.shape[-1]
    second = xp.asarray(np.arange(n) >= n // 2, dtype=R.dtype) * selected
    first = selected - second
    mean_first = (first * rho * R).sum(axis=-1, keepdims=True) / xp.maximum(first.sum(axis=-1, keepdims=True), 1)
    upscale = selected.sum(axis=-1, keepdims=True) / xp.maximum(second.sum(axis=-1, keepdims=True), 1)
    return -(R * R * selected - second * upscale * 2 * mean_first * R)


def variance_weights(returns: Any, where: Any = None) -> Any:
    """A quieter unbiased form, for comparison: -grad V = E[sum_i weight_i score_i] n / ((n - 1)(n - 2)), n >= 3.

    weight_i = s^2 - (R_i - mean R)^2, with s^2 dividing by n.
    """
    xp, R = as_returns(returns)
    selected = as_mass(xp, R, where)
    n = xp.maximum(selected.sum(axis=-1, keepdims=True), 1)
    # Distances to any one return first: the mean of large returns would be rounded to their last digit.
    R = R - R[..., :1]
    deviation = (R - (R * selected).sum(axis=-1, keepdims=True) / n) * selected
    return ((deviation**2).sum(axis=-1, keepdims=True) / n - deviation**2) * selected


def _double_sampling(sample: Sample, state: Any) -> tuple[Any, Any]:
    w = double_sampling_weights(sample.returns, sample.where, sample.ratios)
    return w / sample.count.clip(1), state


VARIANCE = RiskMeasure(value=variance, weights=_double_sampling, least_episodes=4)
