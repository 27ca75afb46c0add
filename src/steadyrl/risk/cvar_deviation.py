"""CVaR deviation: how far the mean of the worst returns lies below the mean."""

from __future__ import annotations

from typing import Any

from steadyrl.risk.cvar import checked_tail, tail_mean
from steadyrl.risk.measure import Law, ParametricMeasure, Properties
from steadyrl.risk.sample import as_scaled_returns, deviations


def cvar_deviation(returns: Any, alpha: float = 0.1) -> Any:
    """E[X] - CVaR of a sample, over the last axis; CVaR as in `cvar`.

    Example: `cvar_deviation([0, 4, 4, 8], 0.25)` is 4.
    """
    checked_tail(alpha)
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(-tail_mean(xp, deviations(xp, R), alpha))


def cvar_deviation_utility(returns: Any, law: Law, alpha: Any) -> Any:
    """-g - (q - g)+ / alpha, where q is the alpha-quantile of the law."""
    # g - q, not g: large returns that differ little keep their precision.
    below = returns - law.quantile(alpha)
    return below.clip(max=0) / alpha - below


CVAR_DEVIATION = ParametricMeasure(
    "alpha",
    0.1,
    value_at=cvar_deviation,
    utility_at=cvar_deviation_utility,
    checked=checked_tail,
    properties=Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True),
)
