"""Mean against risk: which points are dominated, and which span the hull."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def dominated(mean: ArrayLike, risk: ArrayLike) -> NDArray[np.bool_]:
    """[n]: whether another point has at least the mean and at most the risk, and is better in one of them."""
    E, D = np.asarray(mean, np.float64), np.asarray(risk, np.float64)
    as_good = (E[None] >= E[:, None]) & (D[None] <= D[:, None])
    better = (E[None] > E[:, None]) | (D[None] < D[:, None])
    return np.asarray((as_good & better).any(axis=1))


def hull(mean: ArrayLike, risk: ArrayLike) -> list[int]:
    """The indices of the points that maximize mean - lambda * risk for some lambda > 0, from least risk to most.

    They are the vertices of the upper left part of the convex hull, where risk is to the right and the mean upwards. Of
    points that are equal, the first; points between two vertices are left out.
    """
    E, D = np.asarray(mean, np.float64), np.asarray(risk, np.float64)
    chain: list[int] = []
    # The highest mean of each risk first: the others are dominated.
    for i in sorted(range(len(E)), key=lambda i: (D[i], -E[i], i)):
        if chain and E[i] <= E[chain[-1]]:
            continue
        # A vertex is above the line from the one before it to the new point, so slopes fall from left to right.
        while len(chain) > 1 and _rises(E, D, chain[-2], chain[-1], i):
            chain.pop()
        chain.append(i)
    return chain


def _rises(E: NDArray[np.float64], D: NDArray[np.float64], a: int, b: int, c: int) -> bool:
    """Whether the slope from b to c is at least that from a to b."""
    return bool((E[c] - E[b]) * (D[b] - D[a]) >= (E[b] - E[a]) * (D[c] - D[b]))
