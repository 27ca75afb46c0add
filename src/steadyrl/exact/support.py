"""The values that an accumulated reward may take: all of them if they are few, else a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW = 6
"""The grid is dense around sums of up to this many shifts, because most episodes have few."""
SHARE = 0.1
"""The share of the grid's points that each number of shifts gets; a uniform net gets the rest."""


def merged(values: Floats, tolerance: float) -> Floats:
    """`values` in ascending order, without those that are closer than `tolerance` to the one before."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-np.inf) > tolerance]


def accumulated(shifts: Sequence[Floats], points: int, tolerance: float) -> Floats:
    """Ascending values for Y = sum_t d_t, where d_t is 0 or one of `shifts[t]`.

    If the sums are at most `points` many, they are returned: a lattice when gamma = 1 and the rewards have a
    common unit, or any process that is short. If not, about `points` of them and of values between them. The
    least and the largest sum after each step are always there, so that Y, rounded to its neighbours after
    each step, never leaves the support.
    """
    sums = np.zeros(1)
    for shift in shifts:
        sums = merged(np.append(sums, np.add.outer(sums, shift)), tolerance)
        if len(sums) > points:
            return _grid(shifts, points, tolerance)
    return sums


def _grid(shifts: Sequence[Floats], points: int, tolerance: float) -> Floats:
    """Where Y is likely to be, about `points` values: dense around sums of few shifts, uniform elsewhere."""
    lowest = np.cumsum([np.min(shift, initial=0) for shift in shifts])
    highest = np.cumsum([np.max(shift, initial=0) for shift in shifts])
    share = int(SHARE * points)
    single = _thinned(np.concatenate(shifts), share, tolerance)
    few = np.zeros(1)
    chosen = [few, lowest, highest]
    for _ in range(FEW):
        few = _thinned(np.add.outer(few, single), share, tolerance)
        chosen.append(few)
    left = points - len(merged(np.concatenate(chosen), tolerance))
    net = np.linspace(lowest[-1], highest[-1], max(left, 2))
    return merged(np.concatenate([*chosen, net]), tolerance)


def _thinned(values: Floats, count: int, tolerance: float) -> Floats:
    """At most `count` of `values`, one in each of equal bins, as narrow as that allows."""
    values = merged(values.ravel(), tolerance)
    if len(values) <= count:
        return values
    if count < 2:
        return values[:count]
    kept = values[:0]
    width = (values[-1] - values[0]) / (count - 1)
    while True:
        _, first = np.unique(np.floor((values - values[0]) / width), return_index=True)
        if len(first) > count:
            return kept
        kept, width = values[first], width / 1.2
