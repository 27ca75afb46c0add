"""Variance and standard deviation, and the weights of the variance's gradient by double sampling (MVO, Eqs. 2-3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.risk.measure import Law, Properties, RiskMeasure, Sample, from_utility
from steadyrl.risk.sample import as_mass, as_scaled_returns


def variance(returns: Any) -> Any:
    """The sample variance over the last axis, dividing by n - 1."""
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(xp.var(R, axis=-1, ddof=1), degree=2)


def standard_deviation(returns: Any) -> Any:
    """The square root of `variance`."""
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(xp.std(R, axis=-1, ddof=1))


def double_sampling_weights(returns: Any, where: Any = None, ratios: Any = None) -> Any:
    """Weights with -grad V = E[sum_i rho_i weight_i score_i] / n.

    grad V = grad E[R^2] - 2 E[R] grad E[R], and the product of two expectations needs two independent samples. The
    first half A of the batch estimates E[R] by J_A = mean of rho R, the second half B estimates grad E[R]:
    weight_i = -(R_i^2 - [i in B] (n / n_B) 2 J_A R_i), where n and n_B count selected returns only. The halves are
    split by position, so never pass sorted returns (deviation 10).
    """
    xp, R, scale = as_scaled_returns(returns)
    selected = as_mass(xp, R, where)
    rho = as_mass(xp, R, where, ratios)
    n = R.shape[-1]
    second = xp.asarray(np.arange(n) >= n // 2, dtype=R.dtype) * selected
    first = selected - second
    mean_first = (first * rho * R).sum(axis=-1, keepdims=True) / xp.maximum(first.sum(axis=-1, keepdims=True), 1)
    upscale = selected.sum(axis=-1, keepdims=True) / xp.maximum(second.sum(axis=-1, keepdims=True), 1)
    return scale.restore_weights(-(R * R * selected - second * upscale * 2 * mean_first * R), degree=2)


def variance_weights(returns: Any, where: Any = None) -> Any:
    """Unbiased weights of lower variance, for comparison: -grad V = E[sum_i weight_i score_i] n / ((n - 1)(n - 2)).

    weight_i = s^2 - (R_i - mean R)^2, where s^2 divides by n, for n >= 3.
    """
    xp, R, scale = as_scaled_returns(returns)
    selected = as_mass(xp, R, where)
    n = xp.maximum(selected.sum(axis=-1, keepdims=True), 1)
    # Subtract any one return first: the mean of large returns would lose precision.
    R = R - R[..., :1]
    deviation = (R - (R * selected).sum(axis=-1, keepdims=True) / n) * selected
    weights = ((deviation**2).sum(axis=-1, keepdims=True) / n - deviation**2) * selected
    return scale.restore_weights(weights, degree=2)


def _double_sampling(sample: Sample, state: Any) -> tuple[Any, Any]:
    w = double_sampling_weights(sample.returns, sample.where, sample.ratios)
    return w / sample.count.clip(1), state


def variance_utility(returns: Any, law: Law) -> Any:
    """-(g - E[X])^2."""
    return -((returns - law.probabilities @ law.returns) ** 2)


def standard_deviation_utility(returns: Any, law: Law) -> Any:
    """-(g - E[X])^2 / (2 s), where s is the standard deviation; 0 for a law without dispersion (deviation 60)."""
    g, X = law.centered(returns)
    spread = (X.probabilities @ X.returns**2) ** 0.5
    dispersed = spread > law.noise
    return -(g**2) * dispersed / (2 * spread + ~dispersed)


VARIANCE = RiskMeasure(
    value=variance,
    weights=_double_sampling,
    utility=variance_utility,
    min_episodes=4,
    properties=Properties(location_invariant=True, degree=2, sub_additive=False, respects_convex_order=True),
)
STANDARD_DEVIATION = from_utility(
    standard_deviation,
    standard_deviation_utility,
    Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True),
)
