"""Conditional value at risk: the mean of the worst returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.risk.sample import as_returns


def cvar(returns: Any, alpha: float) -> Any:
    """The mean of the lowest share `alpha` of the returns, over the last axis.

    Where alpha * n is not whole, the last observation counts by its fraction; below 1 it is the minimum.

    Example: `cvar([1, 2, 3, 4], 0.375)` is (1 + 0.5 * 2) / 1.5.
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha={alpha}: the tail is a share of the returns, so 0 < alpha <= 1.")
    xp, R = as_returns(returns)
    k = max(alpha * R.shape[-1], 1.0)
    weight = np.clip(k - np.arange(R.shape[-1]), 0, 1) / k
    ascending = xp.sort(R, axis=-1)
    lowest = ascending[..., :1]
    # Averaging the distances to the minimum keeps the digits of large returns that differ little.
    return lowest[..., 0] + ((ascending - lowest) * xp.asarray(weight, dtype=R.dtype)).sum(axis=-1)
