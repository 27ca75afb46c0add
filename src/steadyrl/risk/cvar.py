"""Conditional value at risk, CVaR or expected shortfall (ES): the mean of the worst returns."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.risk.measure import Law, ParametricMeasure, Properties
from steadyrl.risk.sample import as_scaled_returns


def cvar(returns: Any, alpha: float = 0.1) -> Any:
    """The mean of the lowest fraction `alpha` of the returns, over the last axis.

    If alpha * n is not an integer, the last return counts with the remaining fraction. If alpha * n < 1, the result is
    the minimum.

    Example: `cvar([1, 2, 3, 4], 0.375)` is (1 + 0.5 * 2) / 1.5.
    """
    checked_tail(alpha)
    xp, R, scale = as_scaled_returns(returns)
    lowest = R.min(axis=-1, keepdims=True)
    # Averages distances to the minimum: large returns that differ little keep their precision.
    return scale.restore_value(lowest[..., 0] + tail_mean(xp, R - lowest, alpha))


def checked_tail(alpha: float) -> float:
    """`alpha`, if it is a fraction of the returns."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha={alpha}: the tail is a fraction of the returns, so 0 < alpha <= 1.")
    return alpha


def tail_mean(xp: ModuleType, R: Any, alpha: float) -> Any:
    """CVaR of an array of returns."""
    k = max(alpha * R.shape[-1], 1.0)
    weight = np.clip(k - np.arange(R.shape[-1]), 0, 1) / k
    return (xp.sort(R, axis=-1) * xp.asarray(weight, dtype=R.dtype)).sum(axis=-1)


def cvar_utility(returns: Any, law: Law, alpha: Any) -> Any:
    """Of minus CVaR: -(q - g)+ / alpha, where q is the alpha-quantile of the law (value at risk).

    With alpha = 1 it is the mean, of which nothing is capped: the highest return that is known may not be the highest.
    """
    xp = jnp if isinstance(returns, jax.Array) else np
    above = returns - law.quantile(alpha)
    return xp.where(alpha >= 1, above, above.clip(max=0)) / alpha


CVAR = ParametricMeasure(
    "alpha",
    0.1,
    value_at=lambda returns, alpha: -cvar(returns, alpha),
    utility_at=cvar_utility,
    checked=checked_tail,
    properties=Properties(location_invariant=False, degree=1, sub_additive=True, respects_convex_order=True),
    higher_is_better=True,
)
"""Minus the mean of the worst returns: what is penalized is a small CVaR."""
