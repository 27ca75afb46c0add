"""Result tables of an experiment: measures at the end of training, with confidence intervals over seeds."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.table import Table

from steadyrl.base.files import write_atomic
from steadyrl.base.shown import printable
from steadyrl.reports.figures.curves import Curves, Recorded, last_tenth, seeds_text, so_far
from steadyrl.reports.measures import DISCOUNTED_GD, DISCOUNTED_GD_MEANING
from steadyrl.reports.results.results import Cell, Cells, Provenance
from steadyrl.reports.terminal import plain, print_table
from steadyrl.runs.experiment import Experiment, Method
from steadyrl.runs.job import command_line
from steadyrl.training.run_folder import versions

WIDTH = 80
"""Columns of what is printed."""
_SOURCES = {"printed": "the settings that the paper prints", "calibrated": "settings that were calibrated here"}
"""How the source of settings begins in the files of experiments, and what that means."""
EXACT = {"exact_mean": "exact E", "exact_variance": "exact V", "exact_gini_deviation": f"exact {DISCOUNTED_GD}"}
"""Exact measures of the discounted return, recorded for finite MDPs, and their headings."""


class AtEnd(NamedTuple):
    """How a curve becomes one value per seed."""

    name: str
    """In results files: it must not change."""
    of: Callable[[Curves, str], NDArray[np.float64]]
    """(curves, metric) -> [seeds]: the value at the end of training."""


LAST_TENTH = AtEnd("last_tenth", lambda curves, metric: np.asarray(last_tenth(curves[metric])))
SO_FAR = AtEnd("so_far_at_end", lambda curves, metric: np.asarray(so_far(curves, metric)[:, -1]))
LAST = AtEnd("at_end", lambda curves, metric: np.asarray(curves[metric][:, -1]))


class Column(NamedTuple):
    """A column of the tables: a heading, and one value per seed."""

    heading: str
    metric: str
    source: str
    """The field of `Recorded` that holds the metric."""
    final: AtEnd

    @property
    def key(self) -> str:
        """Its name in `Recorded.finals`, and so in results files."""
        return f"{self.source}.{self.metric}_{self.final.name}"

    def values(self, recorded: Recorded) -> NDArray[np.float64]:
        """[seeds]: the value at the end of training; none if all runs are left out."""
        if recorded.finals is not None:
            return np.asarray(recorded.finals.get(self.key, np.empty(0)))
        curves = getattr(recorded, self.source)
        return self.final.of(curves, self.metric) if curves else np.empty(0)

    def is_in(self, recorded: Recorded) -> bool | None:
        """Whether the runs have recorded it; None if all of them are left out."""
        if recorded.finals is not None:
            return self.key in recorded.finals if recorded.finals else None
        curves = getattr(recorded, self.source)
        return self.metric in curves if curves else None


def columns_of(experiment: Experiment, cells: Iterable[Cell]) -> list[Column]:
    """Columns for returns, Gini deviation, episode metrics and exact measures, as far as all cells have them.

    Cells whose runs are all left out do not count; it is an error if there is no other.
    """
    cells = list(cells)
    shown = next((cell.recorded for cell in cells if cell.recorded.training), None)
    if shown is None:
        raise ValueError(f"no run can be shown in a table: {printable(next(iter(_notes(cells)), 'there is none.'))}")
    episode_metrics = [name for name in _training_metrics(shown) if name.endswith("_rate") or name == "distance"]
    all_rows = [row for rows in experiment.figures.values() for row in rows]
    so_far_metrics = dict.fromkeys(row.metric for row in all_rows if row.so_far)
    lengths = [row.metric for row in all_rows if (row.metric, row.of) == ("length", "evaluations")]
    columns = [
        Column("evaluation return", "return", "evaluations", LAST_TENTH),
        Column("greedy", "greedy_return", "evaluations", LAST_TENTH),
        *(Column("episode length", name, "evaluations", LAST_TENTH) for name in lengths[:1]),
        Column("return", "return", "training", LAST_TENTH),
        Column(DISCOUNTED_GD, "gini_deviation", "training", LAST_TENTH),
        *(Column(_heading(name), name, "training", LAST_TENTH) for name in episode_metrics),
        *(Column(f"{_heading(name)} so far", name, "training", SO_FAR) for name in so_far_metrics),
        *(Column(title, name, "evaluations", LAST) for name, title in EXACT.items()),
    ]
    present = {column: [column.is_in(cell.recorded) for cell in cells] for column in columns}
    return [column for column in columns if True in present[column] and False not in present[column]]


def _training_metrics(recorded: Recorded) -> Iterable[str]:
    """The names of the metrics of the training episodes."""
    if recorded.finals is None:
        return list(recorded.training)
    start, end = "training.", f"_{LAST_TENTH.name}"
    keys = [key for key in recorded.finals if key.startswith(start) and key.endswith(end)]
    return [key.removeprefix(start).removesuffix(end) for key in keys]


def _legend(columns: Iterable[Column]) -> list[str]:
    """A sentence on the Gini deviation, if there is a column of it."""
    return [DISCOUNTED_GD_MEANING] if any(DISCOUNTED_GD in column.heading for column in columns) else []


def _notes(cells: Iterable[Cell]) -> list[str]:
    """A sentence for each run that is left out."""
    return [note for cell in cells for note in cell.recorded.notes]


def _heading(metric: str) -> str:
    return metric.removesuffix("_rate").replace("_", " ")


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % bootstrap confidence interval of the mean over seeds; for a constant sample, its value."""
    from scipy.stats import bootstrap

    if len(values) < 2 or not np.all(np.isfinite(values)) or np.ptp(values) == 0:
        return float(values.mean()), float(values.mean())
    result = bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(0))
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def print_summary(experiment: Experiment, cells: Cells) -> None:
    """Print a table that fits a terminal, and the source of the settings of each method."""
    recorded = {key: cell.recorded for key, cell in cells.items()}
    seeds = seeds_text(recorded)
    title = f"{_title(experiment, recorded)}{' (± standard error)' * (seeds != '1')}"
    # Only what fits a terminal; the file written by `write_summary` has all columns.
    columns = [c for c in columns_of(experiment, cells.values()) if c.source == "training" and c.final is LAST_TENTH]
    table = Table(title=plain(title), title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", *(plain(column.heading) for column in columns)):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for variant in dict.fromkeys(cell.variant.name for cell in cells.values()):
        table.add_row(plain(variant))
        for cell in (cell for cell in cells.values() if cell.variant.name == variant):
            values = [_with_error(column.metric, column.values(cell.recorded)) for column in columns]
            table.add_row(f" {plain(_row_title(cell, seeds))}", *values)
        table.add_section()
    print_table(table)
    for note in _notes(cells.values()):
        print(printable(note))
    sentences = [_settings_sentence(experiment, method) for method in experiment.methods]
    for sentence in (*_outcomes(cells.values()), *_legend(columns), *sentences):
        print(textwrap.fill(printable(sentence), WIDTH, break_long_words=False, break_on_hyphens=False))


def _outcomes(cells: Iterable[Cell]) -> Iterable[str]:
    """A sentence for each variant: the method with the highest return at the end of training."""
    by_variant: dict[str, dict[str, float]] = {}
    column = Column("return", "return", "training", LAST_TENTH)
    for cell in cells:
        if column.is_in(cell.recorded):
            final = float(column.values(cell.recorded).mean())
            by_variant.setdefault(cell.variant.name, {})[cell.method.title] = final
    for variant, finals in by_variant.items():
        best = max(finals, key=lambda title: finals[title])
        yield f"With {variant}, {best} has the highest return, {finals[best]:.1f}."


def _settings_sentence(experiment: Experiment, method: Method) -> str:
    """Where the settings of a method come from."""
    source = _source(experiment, method)
    for word, meaning in _SOURCES.items():
        if re.match(rf"{word}($|[;:,]| but)", source):
            return f"{method.title} has {meaning}{source.removeprefix(word)}."
    return f"{method.title} has {'the ' if source.startswith('printed') else ''}{source}."


def write_summary(
    experiment: Experiment, cells: Cells, path: Path, made: Provenance | None = None, more: str = ""
) -> None:
    """Write the full table with bootstrap intervals, and the command, versions and settings, as Markdown.

    `made` is how the runs were made, by default now and by this command; `more` is Markdown that goes below.
    """
    made = made or Provenance(command_line(), f"{datetime.now(UTC):%Y-%m-%d}", versions(), "")
    recorded = {key: cell.recorded for key, cell in cells.items()}
    seeds = seeds_text(recorded)
    columns = columns_of(experiment, cells.values())
    headings = ["", "method", *(column.heading for column in columns)]
    rows = []
    for cell in cells.values():
        values = [_with_interval(column.metric, column.values(cell.recorded)) for column in columns]
        rows.append([cell.variant.name, _row_title(cell, seeds), *values])
    lines = [headings, ["---"] * len(headings), *rows]
    packages = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    commit = f"commit {made.commit}" * bool(made.commit)
    text = [
        f"{_title(experiment, recorded)}.",
        textwrap.indent(made.command, "    "),
        textwrap.fill("; ".join(part for part in (made.date, packages, commit) if part), 110),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        *_legend(columns),
        "\n".join(f"- {_settings_sentence(experiment, method)}" for method in experiment.methods),
        *(printable(note) for note in _notes(cells.values())),
        *([more] if more else []),
    ]
    lines_of_file = "\n\n".join(text).split("\n")
    write_atomic(path, "".join(f"{printable(line)}\n" for line in lines_of_file).encode())


def write_curves(cells: Cells, path: Path, points: int = 20) -> None:
    """Write the learning curves as JSON: mean and standard error over seeds, at about `points` points."""
    by_variant: dict[str, Any] = {}
    for (variant, method), cell in cells.items():
        curves = {kind: _downsample(getattr(cell.recorded, kind), points) for kind in ("training", "evaluations")}
        by_variant.setdefault(variant, {})[method] = curves
    write_atomic(path, json.dumps(by_variant).encode())


def _downsample(curves: Curves, points: int) -> dict[str, Any]:
    if not curves:
        return {"episodes": [], "mean": {}, "standard_error": {}}
    records = curves["episodes"].shape[1]
    indices = np.unique(np.linspace(0, records - 1, min(points, records)).astype(int))
    metrics = {name: curves[name][:, indices] for name in curves if name not in ("iteration", "episodes", "time")}
    seeds = len(curves["episodes"])
    return {
        "episodes": curves["episodes"][0, indices].tolist(),
        "mean": {name: _rounded(values.mean(axis=0)) for name, values in metrics.items()},
        "standard_error": {
            name: _rounded(values.std(axis=0, ddof=1) / np.sqrt(seeds)) for name, values in metrics.items() if seeds > 1
        },
    }


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _source(experiment: Experiment, method: Method) -> str:
    """The source of the settings, and the number of timesteps if the method is trained for timesteps."""
    steps = experiment.scale_of(method).timesteps
    return f"{method.source}; trained for {steps:,} steps" if steps else method.source


def _title(experiment: Experiment, recorded: dict[tuple[str, str], Recorded]) -> str:
    budgets = {tuple(experiment.scale_of(method).budget.items()) for method in experiment.methods}
    ((unit, number),) = budgets.pop() if len(budgets) == 1 else (("", 0),)
    length = {"episodes": f"{number:,} episodes", "timesteps": f"{number:,} steps"}.get(unit, "training")
    seeds = seeds_text(recorded)
    return f"{experiment.title}, last tenth of {length}, {seeds} seed{'s' * (seeds != '1')}"


def _row_title(cell: Cell, seeds: str) -> str:
    """The title of a method, with the number of its seeds if those of the table differ in that."""
    count = cell.recorded.seed_count
    return f"{cell.method.title} ({count} seed{'s' * (count != 1)})" if "to" in seeds else cell.method.title


def _with_error(name: str, values: Any) -> str:
    if not len(values):
        return ""
    if len(values) < 2:
        return f"{100 * values.mean():.0f} %" if name.endswith("_rate") else f"{values.mean():.1f}"
    error = values.std(ddof=1) / np.sqrt(len(values))
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} ±{100 * error:.0f} %"
    return f"{values.mean():.1f} ±{error:.1f}"


def _with_interval(name: str, values: Any) -> str:
    if not len(values):
        return ""
    low, high = interval(values)
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} [{100 * low:.0f}, {100 * high:.0f}] %"
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"
