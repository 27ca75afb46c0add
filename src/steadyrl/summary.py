"""Tables of an experiment: what the seeds did at the end of training, with intervals over seeds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from steadyrl.checkpoint import write_whole
from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import Curves, Recorded, last_tenth, so_far
from steadyrl.runs import versions

EXACT = {"exact_mean": "exact E", "exact_variance": "exact V", "exact_gini_deviation": "exact GD"}
"""What is computed of the last policy's discounted return, where it can be, and its headings."""


class Cell(NamedTuple):
    """The runs of one method in one variant."""

    variant: Variant
    method: Method
    recorded: Recorded


class Column(NamedTuple):
    """A column of the tables: a heading, and a number from each seed."""

    heading: str
    metric: str
    of: str
    at_end: Callable[[Curves, str], NDArray[np.float64]]
    """[seeds], from the curves and the metric's name."""


def columns_of(experiment: Experiment, cells: Iterable[Cell]) -> list[Column]:
    """Returns and their spread, the environment's own facts, and what is exact, as far as every cell knows it."""
    cells = list(cells)
    recorded = cells[0].recorded
    facts = [name for name in recorded.training if name.endswith("_rate") or name == "distance"]
    so_far_rows = [row for rows in experiment.figures.values() for row in rows if row.so_far]
    columns = [
        Column("evaluation return", "return", "evaluations", _last_tenth),
        Column("greedy", "greedy_return", "evaluations", _last_tenth),
        Column("return", "return", "training", _last_tenth),
        Column("GD", "gini_deviation", "training", _last_tenth),
        *(Column(_heading(name), name, "training", _last_tenth) for name in facts),
        *(Column(f"{_heading(row.metric)} so far", row.metric, "training", _so_far_at_end) for row in so_far_rows),
        *(Column(title, name, "evaluations", _at_end) for name, title in EXACT.items()),
    ]
    return [c for c in columns if all(c.metric in getattr(cell.recorded, c.of) for cell in cells)]


def _heading(fact: str) -> str:
    return fact.removesuffix("_rate").replace("_", " ")


def _last_tenth(curves: Curves, metric: str) -> NDArray[np.float64]:
    return np.asarray(last_tenth(curves[metric]))


def _so_far_at_end(curves: Curves, metric: str) -> NDArray[np.float64]:
    return np.asarray(so_far(curves, metric)[:, -1])


def _at_end(curves: Curves, metric: str) -> NDArray[np.float64]:
    return np.asarray(curves[metric][:, -1])


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean over seeds; a constant sample's is its value."""
    from scipy.stats import bootstrap

    if len(values) < 2 or np.ptp(values) == 0:
        return float(values.mean()), float(values.mean())
    result = bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(0))
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def print_summary(experiment: Experiment, cells: dict[tuple[str, str], Cell]) -> None:
    """The table, as wide as a terminal, and where the settings come from."""
    title = f"{_title(experiment)}{' (± standard error)' * (experiment.scale.seeds > 1)}"
    # What fits a terminal: the file has the rest.
    columns = [
        c for c in columns_of(experiment, cells.values()) if c.of == "training" and not c.heading.endswith("so far")
    ]
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", "method", *(column.heading for column in columns)):
        table.add_column(heading, justify="left" if heading in ("", "method") else "right", no_wrap=True)
    for cell in cells.values():
        told = [_with_error(c.metric, c.at_end(getattr(cell.recorded, c.of), c.metric)) for c in columns]
        table.add_row(cell.variant.name, cell.method.title, *told)
    Console().print(table)
    for method in experiment.methods:
        print(f"{method.title}: {_source(experiment, method)}.")


def write_summary(experiment: Experiment, cells: dict[tuple[str, str], Cell], path: Path) -> None:
    """The whole table with bootstrap intervals, and what it takes to make it again, as Markdown."""
    columns = columns_of(experiment, cells.values())
    headings = ["", "method", *(column.heading for column in columns)]
    rows = []
    for cell in cells.values():
        told = [_with_interval(c.metric, c.at_end(getattr(cell.recorded, c.of), c.metric)) for c in columns]
        rows.append([cell.variant.name, cell.method.title, *told])
    lines = [headings, ["---"] * len(headings), *rows]
    made = f"{datetime.now(UTC):%Y-%m-%d}; {', '.join(f'{name} {version}' for name, version in versions().items())}"
    command = " ".join(["steadyrl", *sys.argv[1:]])
    text = [
        f"{_title(experiment)}, seeds 0 to {experiment.scale.seeds - 1}.",
        f"    {command}",
        made,
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join(f"- {method.title}: {_source(experiment, method)}." for method in experiment.methods),
    ]
    write_whole(path, ("\n\n".join(text) + "\n").encode())


def write_curves(cells: dict[tuple[str, str], Cell], path: Path, points: int = 20) -> None:
    """The learning curves as numbers: mean and standard error over seeds, at about `points` places, as JSON."""
    told: dict[str, Any] = {}
    for (variant, method), cell in cells.items():
        curves = {kind: _thinned(getattr(cell.recorded, kind), points) for kind in Recorded._fields}
        told.setdefault(variant, {})[method] = curves
    write_whole(path, json.dumps(told).encode())


def _thinned(curves: Curves, points: int) -> dict[str, Any]:
    records = curves["episodes"].shape[1]
    at = np.unique(np.linspace(0, records - 1, min(points, records)).astype(int))
    metrics = {name: curves[name][:, at] for name in curves if name not in ("iteration", "episodes", "time")}
    seeds = len(curves["episodes"])
    return {
        "episodes": curves["episodes"][0, at].tolist(),
        "mean": {name: _rounded(values.mean(axis=0)) for name, values in metrics.items()},
        "standard_error": {
            name: _rounded(values.std(axis=0, ddof=1) / np.sqrt(seeds)) for name, values in metrics.items() if seeds > 1
        },
    }


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _source(experiment: Experiment, method: Method) -> str:
    """Where the settings come from, and for how long it is trained if not as the others."""
    steps = experiment.scale_of(method).timesteps
    return f"{method.source}; trained for {steps:,} steps" if steps else method.source


def _title(experiment: Experiment) -> str:
    budgets = {tuple(experiment.scale_of(method).budget.items()) for method in experiment.methods}
    ((unit, number),) = budgets.pop() if len(budgets) == 1 else (("", 0),)
    length = {"episodes": f"{number:,} episodes", "timesteps": f"{number:,} steps"}.get(unit, "training")
    seeds = experiment.scale.seeds
    return f"{experiment.title}, last tenth of {length}, {seeds} seed{'s' * (seeds > 1)}"


def _with_error(name: str, values: Any) -> str:
    if len(values) < 2:
        return f"{100 * values.mean():.0f} %" if name.endswith("_rate") else f"{values.mean():.1f}"
    error = values.std(ddof=1) / np.sqrt(len(values))
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} ±{100 * error:.0f} %"
    return f"{values.mean():.1f} ±{error:.1f}"


def _with_interval(name: str, values: Any) -> str:
    low, high = interval(values)
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} [{100 * low:.0f}, {100 * high:.0f}] %"
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"
