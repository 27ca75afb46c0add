"""The values that an accumulated reward can take: all of them if there are few enough, otherwise a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_DENSE_SHIFTS = 6
"""The grid is dense around sums of up to this many shifts, because most episodes have few."""
DENSE_FRACTION = 0.1
"""The fraction of the grid points spent on each number of shifts; the rest are spaced uniformly."""


def merge_close(values: Floats, tolerance: float) -> Floats:
    """`values` in ascending order, without those within `tolerance` of the previous one."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-np.inf) > tolerance]


def reward_support(shifts: Sequence[Floats], points: int, tolerance: float) -> Floats:
    """The support of Y = sum_t d_t in ascending order, where d_t is 0 or one of `shifts[t]`.

    If there are at most `points` distinct sums, the support is exactly these; this is the case if gamma = 1 and the
    rewards are multiples of a common unit, or if the horizon is short. Otherwise it is a grid of about `points` values.
    The grid always contains the smallest and the largest sum after each step, so that Y, rounded to a neighbour after
    each step, never leaves it.
    """
    sums = np.zeros(1)
    for shift in shifts:
        sums = merge_close(np.append(sums, np.add.outer(sums, shift)), tolerance)
        if len(sums) > points:
            return _grid(shifts, points, tolerance)
    return sums


def _grid(shifts: Sequence[Floats], points: int, tolerance: float) -> Floats:
    """About `points` values: dense around sums of few shifts, where Y is likely to be, and uniform elsewhere."""
    lowest = np.cumsum([np.min(shift, initial=0) for shift in shifts])
    highest = np.cumsum([np.max(shift, initial=0) for shift in shifts])
    count = int(DENSE_FRACTION * points)
    single = _thin(np.concatenate(shifts), count, tolerance)
    sums = np.zeros(1)
    parts = [sums, lowest, highest]
    for _ in range(MAX_DENSE_SHIFTS):
        sums = _thin(np.add.outer(sums, single), count, tolerance)
        parts.append(sums)
    remaining = points - len(merge_close(np.concatenate(parts), tolerance))
    uniform = np.linspace(lowest[-1], highest[-1], max(remaining, 2))
    return merge_close(np.concatenate([*parts, uniform]), tolerance)


def _thin(values: Floats, count: int, tolerance: float) -> Floats:
    """At most `count` of `values`: the first in each of equal bins, which are as narrow as `count` allows."""
    values = merge_close(values.ravel(), tolerance)
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
