"""Confidence intervals over training seeds and episodes together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from steadyrl.evaluation.reported import REPORTED
from steadyrl.evaluation.risk_report import CONFIDENCE, MAX_DRAWS, Estimate, measure_risk

RESAMPLES = 1000
MIN_RESAMPLES = 200


def risk_of_seeds(
    returns: Sequence[NDArray[np.float64]], names: Iterable[str] = tuple(REPORTED)
) -> dict[str, Estimate]:
    """Measures of the returns of several seeds pooled, with percentile intervals of a hierarchical bootstrap.

    Returns vary between seeds as well as between the episodes of a seed, so each resample draws seeds first, and then
    episodes within each of them. A single seed has the intervals of `measure_risk`, which say nothing about others.

    Args:
        returns: The returns of each seed's episodes; of longer ones the first episodes are drawn from, as many as all
            seeds have.
        names: Measures of `reported.REPORTED`.
    """
    pooled = np.concatenate(returns)
    if len(returns) == 1 or pooled.min() == pooled.max():
        risk = measure_risk(pooled, seed=0)
        return {name: getattr(risk, name) for name in names}
    n, rng = min(map(len, returns)), np.random.default_rng(0)
    table = np.stack([sample[:n] for sample in returns])
    resamples = int(np.clip(MAX_DRAWS // table.size, MIN_RESAMPLES, RESAMPLES))
    seeds = rng.integers(len(table), size=(resamples, len(table), 1))
    drawn = table[seeds, rng.integers(n, size=(resamples, len(table), n))].reshape(resamples, -1)
    tail = (1 - CONFIDENCE) / 2
    return {
        name: Estimate(float(measure(pooled)), *np.quantile(measure(drawn), [tail, 1 - tail]).tolist())
        for name, measure in ((name, REPORTED[name]) for name in names)
    }
