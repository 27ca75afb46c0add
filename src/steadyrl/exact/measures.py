"""Measures of a discrete distribution, as functions of (values, probabilities).

`values` is [m], in ascending order, and `probabilities` is [..., m]; the result has the leading axes. NumPy input
gives NumPy output and JAX input gives JAX output. JAX can differentiate with respect to the probabilities: the result
is the influence function of the measure at each value, up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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

    def cvar_alpha(values: Any, probabilities: Any) -> Any:
        xp = jnp if isinstance(probabilities, jax.Array) else np
        # The part of value i's probability that lies in the tail is its increment of min(F, alpha).
        tail = xp.minimum(probabilities.cumsum(axis=-1), alpha)
        return xp.diff(tail, axis=-1, prepend=0) @ values / alpha

    return cvar_alpha
