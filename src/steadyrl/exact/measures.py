"""Measures of a discrete distribution, as functions of (values, probabilities).

`values` is [m], in ascending order, and `probabilities` is [..., m]; the result has the leading axes. NumPy input
gives NumPy output and JAX input gives JAX output. JAX can differentiate with respect to the probabilities: the result
is the influence function of the measure at each value, up to a constant.

Measures with a number of their own are made from it: `cvar(0.1)` is such a function. `risk` has the same measures of
samples, and says what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.base.names import split_number, unknown
from steadyrl.risk import MEASURES, ParametricMeasure
from steadyrl.risk.entropic import checked_beta
from steadyrl.risk.inter_quantile_range import BAND, checked_level

Measure = Callable[[Any, Any], Any]
"""(values [m], probabilities [..., m]) -> [...]."""


def mean(values: Any, probabilities: Any) -> Any:
    """E[X]."""
    return probabilities @ values


def variance(values: Any, probabilities: Any) -> Any:
    """V[X] = E[(X - E[X])^2]."""
    deviations = values - mean(values, probabilities)[..., None]
    return (probabilities * deviations**2).sum(axis=-1)


def gini_deviation(values: Any, probabilities: Any) -> Any:
    """D[X] = 1/2 E|X1 - X2| = integral of F(x) (1 - F(x)) dx, with X1 and X2 independent copies of X."""
    F = probabilities.cumsum(axis=-1)[..., :-1]  # F = 1 from the largest value on.
    return (F * (1 - F)) @ (values[1:] - values[:-1])


def standard_deviation(values: Any, probabilities: Any) -> Any:
    """The square root of the variance."""
    return _root(variance(values, probabilities))


def semivariance(values: Any, probabilities: Any) -> Any:
    """E[((E[X] - X)+)^2]."""
    deviations = values - mean(values, probabilities)[..., None]
    return (probabilities * deviations.clip(max=0) ** 2).sum(axis=-1)


def semideviation(values: Any, probabilities: Any) -> Any:
    """The square root of the semivariance."""
    return _root(semivariance(values, probabilities))


def mean_deviation(values: Any, probabilities: Any) -> Any:
    """E|X - E[X]|."""
    return (probabilities * abs(values - mean(values, probabilities)[..., None])).sum(axis=-1)


def mean_median_deviation(values: Any, probabilities: Any) -> Any:
    """E|X - median|: the least mean distance from any number, so the median counts as fixed."""
    median = values[(probabilities.cumsum(axis=-1)[..., :-1] < 0.5).sum(axis=-1)]
    return (probabilities * abs(values - median[..., None])).sum(axis=-1)


def cvar(alpha: float) -> Measure:
    """CVaR at level alpha: the mean of the lower alpha tail; the value at the quantile counts with its fraction.

    Args:
        alpha: The tail probability, in (0, 1]; 1 gives the mean.

    Returns:
        The measure, a function of (values, probabilities).
    """
    if not 0 < alpha <= 1:
        raise ValueError(
            f"alpha={alpha}: CVaR is the mean of the lower alpha tail of the distribution. Choose alpha in (0, 1]."
        )
    return _quantile_mean(0.0, alpha)


def cvar_deviation(alpha: float) -> Measure:
    """E[X] - CVaR at level alpha."""
    tail = cvar(alpha)
    return lambda values, probabilities: mean(values, probabilities) - tail(values, probabilities)


def inter_es_range(alpha: float) -> Measure:
    """The mean of the upper alpha tail less that of the lower."""
    return _upper_less_lower(cvar(alpha))


def inter_quantile_range(alpha: float) -> Measure:
    """The upper alpha-quantile less the lower one, each averaged over the levels from alpha / 2 to 3 alpha / 2.

    A single quantile of a discrete distribution has no gradient: see `risk.inter_quantile_range`.
    """
    band = BAND * checked_level(alpha)
    return _upper_less_lower(_quantile_mean(alpha - band, alpha + band))


def entropic_risk(beta: float) -> Measure:
    """log(E[exp(-beta X)]) / beta."""
    checked_beta(beta)

    def entropic(values: Any, probabilities: Any) -> Any:
        xp = jnp if isinstance(probabilities, jax.Array) else np
        possible = probabilities > 0
        terms = xp.log(xp.where(possible, probabilities, 1)) - beta * values
        largest = xp.where(possible, terms, -np.inf).max(axis=-1, keepdims=True)
        # Clipped for values of probability 0: they may be so low that their exponentials are infinite.
        sums = (probabilities * xp.exp((-beta * values - largest).clip(max=700))).sum(axis=-1)
        return (xp.log(sums) + largest[..., 0]) / beta

    return entropic


BY_NAME: dict[str, Measure] = {
    "mean": mean,
    "variance": variance,
    "standard_deviation": standard_deviation,
    "semivariance": semivariance,
    "semideviation": semideviation,
    "gini_deviation": gini_deviation,
    "gini": gini_deviation,
    "mean_deviation": mean_deviation,
    "mean_median_deviation": mean_median_deviation,
}
"""The measures without a number of their own."""
WITH_NUMBER: dict[str, Callable[[float], Measure]] = {
    "cvar": cvar,
    "cvar_deviation": cvar_deviation,
    "inter_es_range": inter_es_range,
    "inter_quantile_range": inter_quantile_range,
    "entropic_risk": entropic_risk,
}
"""The others; without a number they have that of `risk.MEASURES`."""


def by_name(text: str) -> Measure:
    """The measure that a text such as "semivariance", "cvar" or "cvar:0.2" names."""
    name, number = split_number(text)
    if name in BY_NAME and number is None:
        return BY_NAME[name]
    if name in WITH_NUMBER:
        default = MEASURES[name]
        assert isinstance(default, ParametricMeasure)
        return WITH_NUMBER[name](default.number if number is None else number)
    if name in BY_NAME:
        raise ValueError(f"{text}: {name} has no number of its own. Write {name}.")
    raise ValueError(unknown("measure", name, [*BY_NAME, *WITH_NUMBER], {"gini": "gini_deviation"}))


def _root(square: Any) -> Any:
    """The square root; where it is 0 its derivative counts as 0 (deviation 60)."""
    xp = jnp if isinstance(square, jax.Array) else np
    return xp.where(square > 0, xp.sqrt(xp.where(square > 0, square, 1)), 0)[()]


def _quantile_mean(low: float, high: float) -> Measure:
    """The mean of the quantiles at levels from `low` to `high`."""

    def quantile_mean(values: Any, probabilities: Any) -> Any:
        xp = jnp if isinstance(probabilities, jax.Array) else np
        # The part of value i's probability that lies in between is its increment of F, clipped.
        F = probabilities.cumsum(axis=-1).clip(low, high)
        return xp.diff(F, axis=-1, prepend=low) @ values / (high - low)

    return quantile_mean


def _upper_less_lower(lower: Measure) -> Measure:
    """Minus a measure of the lower tail and minus that of -X."""

    def difference(values: Any, probabilities: Any) -> Any:
        # Around one of the values: large values that differ little keep their precision.
        X = values - values[0]
        return -lower(-X[::-1], probabilities[..., ::-1]) - lower(X, probabilities)

    return difference
