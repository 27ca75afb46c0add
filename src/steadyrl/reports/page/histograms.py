"""Histograms of returns on shared bins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BINS = 120
"""Maximum number of bars."""


def bin_edges(returns: Array) -> Array:
    """Edges of at most `BINS` bins of width 1, 2 or 5 times a power of ten, centred on multiples of the width."""
    low, high = float(returns.min()), float(returns.max())
    if high - low <= max(1e-100, 1e-12 * max(abs(low), abs(high))):
        margin = max(1.0, 1e-6 * abs(low))
        low, high = low - margin, high + margin
    # Integer returns, as in the maze, get one bar each if they fit.
    integer_width = 1.0 if np.array_equal(returns, np.round(returns)) else 0.0
    min_width = max((high - low) / (BINS - 2), integer_width)
    power = 10.0 ** math.floor(math.log10(min_width))
    width = next(step * power for step in (1, 2, 5, 10) if step * power >= min_width * (1 - 1e-9))
    first, last = math.floor(low / width - 0.5), math.ceil(high / width + 0.5)
    return np.arange(first + 0.5, last + 1) * width


def counts_of(returns: Array, edges: Array) -> list[list[int]]:
    """[bin, number of episodes] of each bin that is not empty."""
    counts = np.histogram(returns, edges)[0]
    return [[int(index), int(counts[index])] for index in np.flatnonzero(counts)]
