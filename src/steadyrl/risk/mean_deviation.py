"""Mean absolute deviations: the mean distance of the returns from their mean, or from their median."""

from __future__ import annotations

from typing import Any

from steadyrl.risk.measure import Law, Properties, from_utility
from steadyrl.risk.sample import as_scaled_returns, deviations


def mean_deviation(returns: Any) -> Any:
    """The mean of |R_i - mean R|, over the last axis, divided by n: that of the sample as a law.

    Example: `mean_deviation([0, 1, 5])` is (2 + 1 + 3) / 3.
    """
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(abs(deviations(xp, R)).mean(axis=-1))


def mean_median_deviation(returns: Any) -> Any:
    """The mean of |R_i - median of R|, over the last axis, divided by n: the least mean distance from any number.

    Example: `mean_median_deviation([0, 1, 5])` is (1 + 0 + 4) / 3.
    """
    xp, R, scale = as_scaled_returns(returns)
    D = deviations(xp, R)
    return scale.restore_value(abs(D - xp.median(D, axis=-1, keepdims=True)).mean(axis=-1))


def mean_deviation_utility(returns: Any, law: Law) -> Any:
    """-|g - m| - (g - m) [P(X < m) - P(X > m)] with m = E[X]: a higher g also raises m.

    Returns that are equal to m count to neither side: there the measure has a kink, and this is the slope in between.
    """
    g, X = law.centered(returns)
    above, below = X.returns > law.noise, X.returns < -law.noise
    return -abs(g) + (X.probabilities @ above - X.probabilities @ below) * g


def mean_median_deviation_utility(returns: Any, law: Law) -> Any:
    """-|g - median|: the median is where the distance is least, so moving it changes nothing."""
    return -abs(returns - law.quantile(0.5))


_PROPERTIES = Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True)
MEAN_DEVIATION = from_utility(mean_deviation, mean_deviation_utility, _PROPERTIES)
MEAN_MEDIAN_DEVIATION = from_utility(mean_median_deviation, mean_median_deviation_utility, _PROPERTIES)
