"""Learning curves of a group of runs, and its measures at the end of training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
EVALUATION_TITLES = {
    "return": "Return, evaluation",
    "greedy_return": "Return, most likely actions",
    "undiscounted_gini_deviation": f"{GD}, evaluation",
    "cvar_10": "CVaR 10 %, evaluation",
    "exact_mean": "Discounted return, exact",
    "exact_gini_deviation": "Discounted GD, exact",
    "exact_variance": "Variance of the discounted return, exact",
}
"""Titles of the measures of evaluations during training; the rest is called as in training."""
TRAINING, EVALUATION = "records", "evaluations"
"""The fields of a run that hold the two kinds of records."""
_FOLLOWS = {"greedy_return": "return", "exact_mean": "return", "exact_gini_deviation": "gini_deviation"}
"""Measures of evaluations and the measure of training that they stand beside, where the names differ."""
POINTS = 150
"""Maximum number of points of a curve."""
MIN_POINTS = 20


class Curve(NamedTuple):
    """One measure over training, of each seed of a group."""

    episodes: Array
    """[points]."""
    values: Array
    """[seeds, points]."""
    timesteps: Array | None = None
    """[points]: the mean over seeds, if it was recorded."""
    members: tuple[int, ...] = ()
    """[seeds]: which of the group's runs they are."""

    @property
    def mean(self) -> Array:
        """[points]: over seeds."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def error(self) -> Array | None:
        """[points]: one standard error of the mean; None for a single seed."""
        n = len(self.values)
        return np.asarray(self.values.std(axis=0, ddof=1) / np.sqrt(n)) if n > 1 else None


class Measure(NamedTuple):
    """What a panel shows: a name in the records of training, or of evaluations."""

    name: str
    source: str = TRAINING

    @property
    def title(self) -> str:
        """Its title in the report."""
        if self.source == TRAINING:
            return title(self.name)
        return EVALUATION_TITLES.get(self.name, f"{title(self.name)}, evaluation")


def title(measure: str) -> str:
    """The title of a measure of training in the report."""
    return {**TITLES, **UPDATE_METRICS}.get(measure, measure.replace("_", " ").capitalize())


def measures_of(groups: Iterable[Group], episode_metrics: Iterable[str]) -> list[str]:
    """The recorded measures that get a curve: those in `TITLES`, then other rates and the `episode_metrics`."""
    recorded = _recorded(groups)
    if "white_path_rate" in recorded:
        recorded["optimal_rate"] = None
    others = [name for name in recorded if name not in TITLES and (is_rate(name) or name in set(episode_metrics))]
    return [name for name in TITLES if name in recorded] + others


def panels_of(groups: Sequence[Group], measures: Sequence[str]) -> list[Measure]:
    """Measures of training, each followed by those of evaluations that belong beside it; the other ones at the end."""
    recorded = _recorded(groups, EVALUATION)
    known = [name for name in EVALUATION_TITLES if name in recorded]
    known += [name for name in recorded if name not in EVALUATION_TITLES and name in measures]
    panels: list[Measure] = []
    for measure in measures:
        panels.append(Measure(measure))
        panels += [Measure(name, EVALUATION) for name in known if _FOLLOWS.get(name, name) == measure]
    placed = {panel.name for panel in panels if panel.source == EVALUATION}
    return panels + [Measure(name, EVALUATION) for name in known if name not in placed]


def update_metrics_of(groups: Iterable[Group]) -> list[str]:
    """The recorded metrics of the updates, in the order of `UPDATE_METRICS`."""
    recorded = _recorded(groups)
    return [name for name in UPDATE_METRICS if name in recorded]


def _recorded(groups: Iterable[Group], source: str = TRAINING) -> dict[str, None]:
    """The names in the records, in order of first appearance; not every record has all of them."""
    runs = (run for group in groups for run in group.runs)
    return dict.fromkeys(name for run in runs for record in getattr(run, source) for name in record)


def curve_of(group: Group, measure: Measure | str, points: int = POINTS) -> Curve | None:
    """The values of each seed, up to the end of the shortest run; None if the measure was not recorded."""
    measure = Measure(measure) if isinstance(measure, str) else measure
    found = {i: series for i, run in enumerate(group.runs) if (series := _series(run, measure)) is not None}
    if not found:
        return None
    runs = list(found.values())
    x = max((run.episodes for run in runs), key=len)
    first, last = max(run.episodes[0] for run in runs), min(run.episodes[-1] for run in runs)
    x = x[(x >= first) & (x <= last)]
    if not len(x):
        x = np.array([last])
    # Interpolation is exact where a run has a record, so runs recorded at the same episodes keep their values.
    Y = np.stack([np.interp(x, run.episodes, run.values) for run in runs])
    steps = [np.interp(x, run.episodes, run.timesteps) for run in runs if run.timesteps is not None]
    grid, Y = _downsample(x, Y, points)
    timesteps = np.interp(grid, x, np.mean(steps, axis=0)) if len(steps) == len(runs) else None
    return Curve(grid, Y, timesteps, tuple(found))


def final_of_run(run: FoundRun, measure: str) -> float | None:
    """The mean of the last tenth of training; None if the measure was not recorded."""
    series = _series(run, Measure(measure))
    if series is None:
        return None
    return float(series.values[-max(1, len(series.values) // 10) :].mean())


def final_of(group: Group, measure: str) -> tuple[float, float | None] | None:
    """The mean over seeds in the last tenth of training, and its standard error (None for a single seed)."""
    finals = [final for run in group.runs if (final := final_of_run(run, measure)) is not None]
    if not finals:
        return None
    last = np.array(finals)
    return float(last.mean()), float(last.std(ddof=1) / np.sqrt(len(last))) if len(last) > 1 else None


class _Series(NamedTuple):
    """A measure of one run, at the records that hold a finite value."""

    episodes: Array
    values: Array
    timesteps: Array | None


def _series(run: FoundRun, measure: Measure) -> _Series | None:
    """None if no record holds a finite value."""
    name = "white_path_rate" if measure.name == "optimal_rate" else measure.name
    found = [record for record in getattr(run, measure.source) if name in record and np.isfinite(record[name])]
    if not found:
        return None
    episodes, values = (np.array([record[key] for record in found], dtype=np.float64) for key in ("episodes", name))
    if measure.name == "optimal_rate":
        values = so_far({"episodes": episodes[None], name: values[None]}, name)[0]
    steps = [record.get("timesteps") for record in found]
    return _Series(episodes, values, None if None in steps else np.array(steps, dtype=np.float64))


def _downsample(x: Array, Y: Array, points: int) -> tuple[Array, Array]:
    """At most so many points: means of adjacent points, each placed at the last of them."""
    if len(x) <= points:
        return x, Y
    starts = np.linspace(0, len(x), points, endpoint=False).astype(int)
    sizes = np.diff(starts, append=len(x))
    return x[starts + sizes - 1], np.add.reduceat(Y, starts, axis=1) / sizes
