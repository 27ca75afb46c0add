"""Curves and numbers made small: few points, few digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadyrl.reports.figures.curves import Curves

POINTS = 30
"""Of a curve."""
SWEEP_POINTS = 20
"""Of a curve of the sensitivity study."""
DIGITS = 5
"""Significant digits of single numbers."""
CURVE_DIGITS = 4
"""Significant digits of the largest number of a curve; the others have as many decimals."""
COUNTERS = ("episodes", "timesteps")


def downsample(curves: Curves, metrics: list[str], over: str, points: int = POINTS) -> Curves:
    """Some metrics at `points` points at most: each the mean of as many records, at the end of them.

    The last tenth of the points is the last tenth of the records, up to rounding.
    """
    if not curves:
        return {}
    records = curves[over].shape[1]
    edges = np.unique(np.round(np.linspace(0, records, min(points, records) + 1)).astype(int))
    counts = np.diff(edges)
    means = {name: np.add.reduceat(curves[name], edges[:-1], axis=1) / counts for name in metrics if name in curves}
    counters = {name: np.round(curves[name][:, edges[1:] - 1]) for name in COUNTERS if name in (over, "episodes")}
    return counters | means


def significant(value: float, digits: int = DIGITS) -> float | None:
    """The number with so many significant digits; None if it is not finite."""
    return shortest(float(f"{value:.{digits}g}"))


def fixed(values: ArrayLike, digits: int = CURVE_DIGITS) -> list[Any]:
    """Nested lists of numbers with so many decimals that the largest has `digits` significant digits."""
    array: NDArray[np.float64] = np.asarray(values, np.float64)
    largest = float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    return _nested(np.round(array, decimals))


def shortest(value: float) -> float | None:
    """As JSON writes it in the fewest characters; None for what JSON does not have."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _nested(array: NDArray[np.float64]) -> list[Any]:
    return [_nested(row) if np.ndim(row) else shortest(float(row)) for row in array]
