"""Conditional value at risk: the mean of the worst returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.risk.sample import as_scaled_returns


def cvar(returns: Any, alpha: float) -> Any:
    """The mean of the lowest fraction `alpha` of the returns, over the last axis.

    If alpha * n is not an integer, the last return counts with the remaining fraction. If alpha * n < 1, the result is
    the minimum.

    Example: `cvar([1, 2, 3, 4], 0.375)` is (1 + 0.5 * 2) / 1.5.
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha={alpha}: the tail is a fraction of the returns, so 0 < alpha <= 1.")
    xp, R, scale = as_scaled_returns(returns)
    k = max(alpha * R.shape[-1], 1.0)
    weight = np.clip(k - np.arange(R.shape[-1]), 0, 1) / k
    ascending = xp.sort(R, axis=-1)
    lowest = ascending[..., :1]
    # Averages distances to the minimum: large returns that differ little keep their precision.
    tail = lowest[..., 0] + ((ascending - lowest) * xp.asarray(weight, dtype=R.dtype)).sum(axis=-1)
    return scale.restore_value(tail)
