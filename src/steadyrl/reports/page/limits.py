"""Limits of a y axis that a few outliers do not flatten."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from steadyrl.reports.page.learning import Curve

SHARE = 1.0
"""Percent of the values at either end that may lie outside the axis."""
FLATTENED = 2.0
"""Outliers are cut off if the axis would otherwise be more than this many times as long."""
PADDING = 0.06


def robust_limits(curves: Iterable[Curve]) -> list[float] | None:
    """[low, high] from the 1st to the 99th percentile of all curves and bands, with padding.

    None if all values fit an axis that is not much longer.
    """
    values = np.concatenate([edge for curve in curves for edge in _edges(curve)])
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, [SHARE, 100 - SHARE])
    length = (1 + 2 * PADDING) * (high - low)
    if not 0 < FLATTENED * length < np.ptp(values):
        return None
    return [float(low - PADDING * (high - low)), float(high + PADDING * (high - low))]


def _edges(curve: Curve) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The curve, and the edges of its band."""
    return [curve.mean] if curve.error is None else [curve.mean, curve.mean - curve.error, curve.mean + curve.error]
