"""Learning curves of a group of runs, and its measures at the end of training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.reports.curves import UPDATE_METRICS
from steadyrl.reports.figures.curves import so_far
from steadyrl.reports.measures import DISCOUNTED_GD, GD
from steadyrl.reports.page.formatting import is_rate
from steadyrl.reports.page.groups import Group
from steadyrl.reports.page.runs_found import FoundRun

Array = NDArray[np.float64]

TITLES = {
    "return": "Return",
    "undiscounted_gini_deviation": GD,
    "gini_deviation": f"{DISCOUNTED_GD[0].upper()}{DISCOUNTED_GD[1:]}",
    "goal_rate": "Goal rate",
    "red_visit_rate": "Red-visit rate",
    "white_path_rate": "White-path rate",
    "optimal_rate": "Optimal risk-aversion rate",
}
"""Titles of the known measures, in the order of the report; other episode metrics follow."""
POINTS = 200
"""Maximum number of points per curve; more would not be visible and would enlarge the file."""


class Curve(NamedTuple):
    """A measure over training, averaged over the seeds of a group."""

    episodes: Array
    mean: Array
    error: Array | None
    """One standard error of the mean; None for a single seed."""


def title(measure: str) -> str:
    """The title of a measure in the report."""
    return {**TITLES, **UPDATE_METRICS}.get(measure, measure.replace("_", " ").capitalize())


def measures_of(groups: Iterable[Group], episode_metrics: Iterable[str]) -> list[str]:
    """The recorded measures that get a curve: those in `TITLES`, then other rates and the `episode_metrics`."""
    recorded = _recorded(groups)
    if "white_path_rate" in recorded:
        recorded["optimal_rate"] = None
    others = [name for name in recorded if name not in TITLES and (is_rate(name) or name in set(episode_metrics))]
    return [name for name in TITLES if name in recorded] + others


def update_metrics_of(groups: Iterable[Group]) -> list[str]:
    """The recorded metrics of the updates, in the order of `UPDATE_METRICS`."""
    recorded = _recorded(groups)
    return [name for name in UPDATE_METRICS if name in recorded]


def _recorded(groups: Iterable[Group]) -> dict[str, None]:
    """The names in the records, in order of first appearance; not every record has all of them."""
    return dict.fromkeys(name for group in groups for run in group.runs for record in run.records for name in record)


def curve_of(group: Group, measure: str) -> Curve | None:
    """The mean over seeds, up to the end of the shortest run; None if the measure was not recorded."""
    runs = [series for run in group.runs if (series := _series(run, measure)) is not None]
    if not runs:
        return None
    x = max((episodes for episodes, _ in runs), key=len)
    first, last = max(episodes[0] for episodes, _ in runs), min(episodes[-1] for episodes, _ in runs)
    x = x[(x >= first) & (x <= last)]
    if not len(x):
        x = np.array([last])
    # Interpolation is exact where a run has a record, so runs recorded at the same episodes keep their values.
    Y = np.stack([np.interp(x, episodes, values) for episodes, values in runs])
    x, Y = _downsample(x, Y)
    error = Y.std(axis=0, ddof=1) / np.sqrt(len(Y)) if len(Y) > 1 else None
    return Curve(x, Y.mean(axis=0), error)


def final_of(group: Group, measure: str) -> tuple[float, float | None] | None:
    """The mean over seeds in the last tenth of training, and its standard error (None for a single seed)."""
    runs = [series[1] for run in group.runs if (series := _series(run, measure)) is not None]
    if not runs:
        return None
    last = np.array([values[-max(1, len(values) // 10) :].mean() for values in runs])
    return float(last.mean()), float(last.std(ddof=1) / np.sqrt(len(last))) if len(last) > 1 else None


def _series(run: FoundRun, measure: str) -> tuple[Array, Array] | None:
    """Training episodes and values of a measure, from the records that hold a finite value; None if there are none."""
    name = "white_path_rate" if measure == "optimal_rate" else measure
    pairs = [(record["episodes"], record[name]) for record in run.records if name in record]
    episodes, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    finite = np.isfinite(values)
    episodes, values = episodes[finite], values[finite]
    if not len(values):
        return None
    if measure == "optimal_rate":
        values = so_far({"episodes": episodes[None], name: values[None]}, name)[0]
    return episodes, values


def _downsample(x: Array, Y: Array) -> tuple[Array, Array]:
    """At most `POINTS` points: means of adjacent points, each placed at the last of them."""
    if len(x) <= POINTS:
        return x, Y
    starts = np.linspace(0, len(x), POINTS, endpoint=False).astype(int)
    sizes = np.diff(starts, append=len(x))
    return x[starts + sizes - 1], np.add.reduceat(Y, starts, axis=1) / sizes
