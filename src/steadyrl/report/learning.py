"""How a group learned: each measure over training, and at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.figures.curves import so_far
from steadyrl.report.groups import Group
from steadyrl.report.numerals import is_rate
from steadyrl.report.runs_found import FoundRun

Array = NDArray[np.float64]

TITLES = {
    "return": "Return",
    "gini_deviation": "Gini deviation of the discounted return",
    "goal_rate": "Goal rate",
    "red_visit_rate": "Red-visit rate",
    "white_path_rate": "White-path rate",
    "optimal_rate": "Optimal risk-aversion rate",
}
"""The measures with a name of their own, in the order of the page; an environment's other facts follow."""
POINTS = 200
"""At most so many points a curve: more are not seen, and make the page heavy."""


class Curve(NamedTuple):
    """A measure over training, from all seeds of a group."""

    episodes: Array
    mean: Array
    error: Array | None
    """One standard error of the mean; None for a single seed."""


def title(measure: str) -> str:
    """What the page calls a measure."""
    return TITLES.get(measure, measure.replace("_", " ").capitalize())


def measures_of(groups: Iterable[Group], facts: Iterable[str]) -> list[str]:
    """What there are curves of: the known measures, then whatever is a rate or one of the environment's `facts`."""
    recorded = dict.fromkeys(name for g in groups for run in g.runs if run.records for name in run.records[-1])
    if "white_path_rate" in recorded:
        recorded["optimal_rate"] = None
    others = [name for name in recorded if name not in TITLES and (is_rate(name) or name in set(facts))]
    return [name for name in TITLES if name in recorded] + others


def curve_of(group: Group, measure: str) -> Curve | None:
    """The mean over seeds up to where the shortest run ends; None where nothing was recorded."""
    runs = [found for run in group.runs if (found := _recorded(run, measure)) is not None]
    if not runs:
        return None
    x = max((episodes for episodes, _ in runs), key=len)
    first, last = max(episodes[0] for episodes, _ in runs), min(episodes[-1] for episodes, _ in runs)
    x = x[(x >= first) & (x <= last)]
    if not len(x):
        x = np.array([last])
    # Runs that were recorded at the same episodes, which is the rule, keep their values to the bit.
    Y = np.stack([np.interp(x, episodes, values) for episodes, values in runs])
    x, Y = _thinned(x, Y)
    error = Y.std(axis=0, ddof=1) / np.sqrt(len(Y)) if len(Y) > 1 else None
    return Curve(x, Y.mean(axis=0), error)


def final_of(group: Group, measure: str) -> tuple[float, float | None] | None:
    """The mean over seeds in the last tenth of training, and its standard error (None for a single seed)."""
    runs = [found[1] for run in group.runs if (found := _recorded(run, measure)) is not None]
    if not runs:
        return None
    last = np.array([values[-max(1, len(values) // 10) :].mean() for values in runs])
    return float(last.mean()), float(last.std(ddof=1) / np.sqrt(len(last))) if len(last) > 1 else None


def _recorded(run: FoundRun, measure: str) -> tuple[Array, Array] | None:
    """Episodes so far and the measure, in the records that hold a finite number of it."""
    name = "white_path_rate" if measure == "optimal_rate" else measure
    pairs = [
        (record["episodes"], record[name])
        for record in run.records
        if isinstance(record.get(name), int | float) and isinstance(record.get("episodes"), int)
    ]
    episodes, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    finite = np.isfinite(values)
    episodes, values = episodes[finite], values[finite]
    if not len(values):
        return None
    if measure == "optimal_rate":
        values = so_far({"episodes": episodes[None], name: values[None]}, name)[0]
    return episodes, values


def _thinned(x: Array, Y: Array) -> tuple[Array, Array]:
    """Means of neighbouring points at the last one's episode, so that at most `POINTS` are left."""
    if len(x) <= POINTS:
        return x, Y
    starts = np.linspace(0, len(x), POINTS, endpoint=False).astype(int)
    sizes = np.diff(starts, append=len(x))
    return x[starts + sizes - 1], np.add.reduceat(Y, starts, axis=1) / sizes
