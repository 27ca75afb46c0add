"""Conditional value at risk: the mean of the worst returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.risk.measure import Law, RiskMeasure, Utility, weights_from
from steadyrl.risk.sample import as_scaled_returns


def cvar(returns: Any, alpha: float) -> Any:
    """The mean of the lowest fraction `alpha` of the returns, over the last axis.

    If alpha * n is not an integer, the last return counts with the remaining fraction. If alpha * n < 1, the result is
    the minimum.

    Example: `cvar([1, 2, 3, 4], 0.375)` is (1 + 0.5 * 2) / 1.5.
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha={alpha}: the tail is a fraction of the returns, so 0 < alpha <= 1.")
    xp, R, scale = as_scaled_returns(returns)
    k = max(alpha * R.shape[-1], 1.0)
    weight = np.clip(k - np.arange(R.shape[-1]), 0, 1) / k
    ascending = xp.sort(R, axis=-1)
    lowest = ascending[..., :1]
    # Averages distances to the minimum: large returns that differ little keep their precision.
    tail = lowest[..., 0] + ((ascending - lowest) * xp.asarray(weight, dtype=R.dtype)).sum(axis=-1)
    return scale.restore_value(tail)


def cvar_utility(alpha: float) -> Utility:
    """Of minus CVaR: -(q - g)+ / alpha, where q is the alpha-quantile of the law."""

    def utility(returns: Any, law: Law) -> Any:
        order = law.returns.argsort()
        ascending, F = law.returns[order], law.probabilities[order].cumsum()
        # A little less than alpha: sums of probabilities in 32 bits may fall short of it.
        q = ascending[(alpha * (1 - 1e-5) > F).sum().clip(max=ascending.size - 1)]
        return (returns - q).clip(max=0) / alpha

    return utility


def _tail_measure(alpha: float) -> RiskMeasure:
    utility = cvar_utility(alpha)
    return RiskMeasure(lambda returns: -cvar(returns, alpha), utility, weights_from(utility), min_episodes=3)


CVAR_10 = _tail_measure(0.1)
"""Minus the mean of the worst tenth of the returns: what is penalized is a small CVaR."""
