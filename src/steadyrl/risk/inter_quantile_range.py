"""Inter-quantile range: the distance between an upper and a lower quantile, each averaged over a band of levels.

Quantiles of a discrete law jump, so a single one has no gradient. Averaged over the levels within `band` of alpha,

    q(alpha) = integral of q_u over u from alpha - band to alpha + band, divided by 2 band,

it has one, like CVaR: both are averages of the quantile function (deviation 61). The band is alpha / 2 by default.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from steadyrl.risk.measure import Law, ParametricMeasure, Properties
from steadyrl.risk.sample import as_scaled_returns, deviations

BAND = 0.5
"""Levels within this share of alpha count by default."""


def inter_quantile_range(returns: Any, alpha: float = 0.25, band: float | None = None) -> Any:
    """The upper alpha-quantile less the lower, over the last axis, each averaged over levels within `band` of alpha.

    `band` is alpha / 2 by default. With `band=0` these are the quantiles of a sample as NumPy interpolates them, and
    the result equals `scipy.stats.iqr` with alpha = 0.25.

    Example: `inter_quantile_range([0, 1, 2, 3, 4], band=0)` is 2.
    """
    checked_level(alpha)
    band = BAND * alpha if band is None else band
    if not 0 <= band <= alpha:
        raise ValueError(f"band={band}: levels from alpha - band to alpha + band count, so 0 <= band <= alpha={alpha}.")
    xp, R, scale = as_scaled_returns(returns)
    D = deviations(xp, R)
    if band == 0:
        low, high = xp.quantile(D, xp.asarray([alpha, 1 - alpha], dtype=D.dtype), axis=-1)
        return scale.restore_value(high - low)
    return scale.restore_value(-_band_mean(xp, -D, alpha, band) - _band_mean(xp, D, alpha, band))


def checked_level(alpha: float) -> float:
    """`alpha`, if it is the level of a quantile below the median."""
    if not 0 < alpha < 0.5:
        raise ValueError(
            f"alpha={alpha}: the range is from the alpha-quantile to the (1 - alpha)-quantile, so 0 < alpha < 0.5."
        )
    return alpha


def _band_mean(xp: ModuleType, R: Any, alpha: float, band: float) -> Any:
    """The mean of the quantiles whose levels are within `band` of `alpha`."""
    levels = np.clip(np.arange(R.shape[-1] + 1) / R.shape[-1], alpha - band, alpha + band)
    weight = xp.asarray(np.diff(levels) / (2 * band), dtype=R.dtype)
    return (xp.sort(R, axis=-1) * weight).sum(axis=-1)


def inter_quantile_range_utility(returns: Any, law: Law, alpha: Any) -> Any:
    """Of minus the upper and plus the lower quantile, with the default band."""
    return _quantile_utility(returns, law, alpha) + _quantile_utility(-returns, law.mirrored, alpha)


def _quantile_utility(returns: Any, law: Law, alpha: Any) -> Any:
    """[(a - g)+ - (b - g)+] / (2 band), where a < b are the quantiles at the ends of the band."""
    low, high = (law.quantile(alpha * share) for share in (1 - BAND, 1 + BAND))
    return ((returns - high).clip(max=0) - (returns - low).clip(max=0)) / (2 * BAND * alpha)


INTER_QUANTILE_RANGE = ParametricMeasure(
    "alpha",
    0.25,
    value_at=inter_quantile_range,
    utility_at=inter_quantile_range_utility,
    checked=checked_level,
    properties=Properties(location_invariant=True, degree=1, sub_additive=False, respects_convex_order=False),
)
