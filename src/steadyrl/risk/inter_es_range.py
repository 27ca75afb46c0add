"""Inter-ES range: the mean of the best returns less the mean of the worst (ES: expected shortfall, CVaR)."""

from __future__ import annotations

from typing import Any

from steadyrl.risk.cvar import checked_tail, cvar_utility, tail_mean
from steadyrl.risk.measure import Law, ParametricMeasure, Properties
from steadyrl.risk.sample import as_scaled_returns, deviations


def inter_es_range(returns: Any, alpha: float = 0.1) -> Any:
    """The mean of the highest fraction `alpha` of the returns less that of the lowest, over the last axis.

    Fractions of a return count as in `cvar`.

    Example: `inter_es_range([0, 4, 4, 8], 0.25)` is 8.
    """
    checked_tail(alpha)
    xp, R, scale = as_scaled_returns(returns)
    D = deviations(xp, R)
    return scale.restore_value(-tail_mean(xp, -D, alpha) - tail_mean(xp, D, alpha))


def inter_es_range_utility(returns: Any, law: Law, alpha: Any) -> Any:
    """-(q - g)+ / alpha - (g - Q)+ / alpha, where q and Q are the alpha-quantiles of the law from below and above."""
    return cvar_utility(returns, law, alpha) + cvar_utility(-returns, law.mirrored, alpha)


INTER_ES_RANGE = ParametricMeasure(
    "alpha",
    0.1,
    value_at=inter_es_range,
    utility_at=inter_es_range_utility,
    checked=checked_tail,
    properties=Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True),
)
