"""Two methods with several training seeds each: measures of all returns and of each run, with intervals.

All runs are evaluated on the same episodes, that is, on the same seeds of the environment, so a table of returns has a
row for each run and a column for each episode. A resample draws runs of each method, and episodes once for both: what
an episode does to both methods cancels in their difference, and what it does to one of them does not become smaller
with more runs. Drawing episodes anew for each run would leave that out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.evaluation.reported import Statistic
from steadyrl.evaluation.risk_report import BATCH_DRAWS, CONFIDENCE, MAX_DRAWS, Estimate

RESAMPLES, MIN_RESAMPLES = 2000, 200
_STREAM = 1
"""Spawn key of its random numbers: those of intervals of single reports have another one."""

Array = NDArray[np.float64]


class MethodMeasures(NamedTuple):
    """Measures of one method, or of as many resamples [B] of it."""

    pooled: Array
    """[..., k]: of the returns of all runs together."""
    of_runs: Array
    """[..., k, S]: of the returns of each run."""

    @property
    def iqm(self) -> Array:
        """[...]: the interquartile mean of the mean returns of the runs."""
        return interquartile_mean(self.of_runs[..., 0, :])


class Intervals(NamedTuple):
    """Estimates by name of measure, of each method and of the difference a - b."""

    a: dict[str, Estimate]
    b: dict[str, Estimate]
    difference: dict[str, Estimate]
    iqm: dict[str, Estimate]
    """By "a", "b" and "difference"."""
    improvement: dict[str, Estimate]
    """How probable it is that a run of a has a higher value than a run of b; equal ones count half."""


def interquartile_mean(values: Array) -> Array:
    """[..., S] to [...]: the mean without the lowest and the highest quarter, rounded down to whole values."""
    cut = values.shape[-1] // 4
    middle: Array = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return middle


def probability_above(a: Array, b: Array) -> Array:
    """[..., S] and [..., T] to [...]: the share of pairs in which the first is higher; equal ones count half."""
    first, second = a[..., :, None], b[..., None, :]
    share: Array = ((first > second) + 0.5 * (first == second)).mean(axis=(-2, -1))
    return share


def seed_intervals(A: Array, B: Array, functions: Mapping[str, Statistic], seed: int) -> Intervals:
    """Estimates with percentile intervals from returns [S, n] and [T, n]; the first function is the mean."""
    exact = _measures(A, functions), _measures(B, functions)
    drawn = _resampled(A, B, functions, seed)

    def estimates(quantity: Callable[[MethodMeasures, MethodMeasures], Array]) -> list[Estimate]:
        tail = (1 - CONFIDENCE) / 2
        limits = np.quantile(np.atleast_2d(quantity(*drawn).T), [tail, 1 - tail], axis=-1)
        values = np.atleast_1d(quantity(*exact))
        return [Estimate(*map(float, numbers)) for numbers in zip(values, *limits, strict=True)]

    def by_name(quantity: Callable[[MethodMeasures, MethodMeasures], Array]) -> dict[str, Estimate]:
        return dict(zip(functions, estimates(quantity), strict=True))

    return Intervals(
        a=by_name(lambda a, b: a.pooled),
        b=by_name(lambda a, b: b.pooled),
        difference=by_name(lambda a, b: a.pooled - b.pooled),
        iqm={
            "a": estimates(lambda a, b: a.iqm)[0],
            "b": estimates(lambda a, b: b.iqm)[0],
            "difference": estimates(lambda a, b: a.iqm - b.iqm)[0],
        },
        improvement=by_name(lambda a, b: probability_above(a.of_runs, b.of_runs)),
    )


def _measures(returns: Array, functions: Mapping[str, Statistic]) -> MethodMeasures:
    """Of returns [..., S, n]."""
    pooled = returns.reshape(*returns.shape[:-2], -1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        of_all = np.stack([np.asarray(function(pooled)) for function in functions.values()], axis=-1)
        of_runs = np.stack([np.asarray(function(returns)) for function in functions.values()], axis=-2)
    return MethodMeasures(of_all, of_runs)


def _resampled(
    A: Array, B: Array, functions: Mapping[str, Statistic], seed: int
) -> tuple[MethodMeasures, MethodMeasures]:
    """The measures of each resample, a batch of them at a time."""
    rng, n = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,))), A.shape[1]
    numbers = A.size + B.size
    remaining, parts = int(np.clip(MAX_DRAWS // numbers, MIN_RESAMPLES, RESAMPLES)), []
    while remaining > 0:
        size = min(remaining, max(1, BATCH_DRAWS // numbers))
        remaining -= size
        episodes = rng.integers(n, size=(size, 1, n))
        runs = [rng.integers(len(table), size=(size, len(table), 1)) for table in (A, B)]
        parts.append([_measures(table[which, episodes], functions) for table, which in zip((A, B), runs, strict=True)])
    a, b = (MethodMeasures(*map(np.concatenate, zip(*method, strict=True))) for method in zip(*parts, strict=True))
    return a, b
