"""Entropic risk: the certainty equivalent of exponential utility, with its sign reversed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.risk.measure import Law, ParametricMeasure, Properties
from steadyrl.risk.sample import as_scaled_returns


def entropic_risk(returns: Any, beta: float = 1.0) -> Any:
    """log(mean of exp(-beta X)) / beta, over the last axis.

    From minus the mean, for small beta, it rises to minus the minimum. Of a normal law it is -mean + beta variance / 2.
    Beta is in units of 1 / return: about 1 / s asks for the risk of losing s.

    Example: `entropic_risk([0, 1], 1.0)` is log((1 + 1 / e) / 2).
    """
    checked_beta(beta)
    xp, R, scale = as_scaled_returns(returns)
    rate = scale.restore_weights(xp.full_like(R[..., :1], beta))  # Of the returns as they are divided.
    lowest = R.min(axis=-1)
    with np.errstate(over="ignore"):  # Returns that are so much higher count as infinite.
        excess = xp.expm1(-rate * (R - lowest[..., None])).mean(axis=-1)
    # log1p and expm1: for small beta the argument of the logarithm is close to 1.
    return scale.restore_value(xp.log1p(excess) / rate.max(axis=-1) - lowest)


def checked_beta(beta: float) -> float:
    """`beta`, if it is positive."""
    if not 0 < beta < np.inf:
        raise ValueError(f"beta={beta}: it is how much risk aversion grows with each unit of return, so beta > 0.")
    return beta


def entropic_utility(returns: Any, law: Law, beta: Any) -> Any:
    """[1 - exp(-beta (g - c))] / beta, where c is the certainty equivalent of the law.

    Returns so far below c that the result would leave the range of floats count as if they were not that far below it.
    """
    xp = jnp if isinstance(law.returns, jax.Array) else np
    possible = law.probabilities > 0
    lowest = xp.where(possible, law.returns, law.returns.max()).min()
    X = xp.where(possible, law.returns - lowest, 0)  # A return of probability 0 may be much lower.
    exponent = -beta * (returns - lowest) - xp.log(law.probabilities @ xp.exp(-beta * X))
    return -xp.expm1(exponent.clip(max=np.log(np.finfo(law.returns.dtype).max) / 2)) / beta


ENTROPIC_RISK = ParametricMeasure(
    "beta",
    1.0,
    value_at=entropic_risk,
    utility_at=entropic_utility,
    checked=checked_beta,
    properties=Properties(location_invariant=False, degree=None, sub_additive=False, respects_convex_order=True),
)
