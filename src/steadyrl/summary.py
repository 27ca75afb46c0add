"""Tables of an experiment: what the seeds did at the end of training, with intervals over seeds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from steadyrl import checkpoint, exact
from steadyrl.checkpoint import write_whole
from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import Curves, optimal_rate
from steadyrl.rollout import finite_face
from steadyrl.runs import agent_file, versions

SAMPLED = {
    "return": "return",
    "gini_deviation": "GD",
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
}
"""What is told of the episodes in the last tenth of training, and its headings."""


EXACT = ("mean", "variance", "gini_deviation")
"""What is computed exactly of the last policy's discounted return."""


class Cell(NamedTuple):
    """The runs of one method in one variant."""

    variant: Variant
    method: Method
    curves: Curves
    exact: dict[str, NDArray[np.float64]]
    """mean, variance and gini_deviation of the last policy's discounted return: name -> [seeds]; or nothing."""


def exact_risk(folders: Iterable[Path]) -> dict[str, NDArray[np.float64]]:
    """The exact E, V and D of G0 under the policy of each run, if its environment is a finite process."""
    agents = [checkpoint.read(agent_file(folder)) for folder in folders]
    face = finite_face(agents[0].env) if agents[0].env is not None else None
    if face is None:
        return {}
    policies = np.stack([agent.probabilities() for agent in agents])
    distribution = exact.return_distribution(face.mdp, policies, agents[0].gamma)
    return {name: getattr(distribution, name) for name in EXACT}


def last_tenth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """[seeds]: the mean of each seed's last tenth of records."""
    return np.asarray(values[:, -max(1, values.shape[1] // 10) :].mean(axis=1))


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean over seeds; a constant sample's is its value."""
    from scipy.stats import bootstrap

    if len(values) < 2 or np.ptp(values) == 0:
        return float(values.mean()), float(values.mean())
    result = bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(0))
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def print_summary(experiment: Experiment, cells: dict[tuple[str, str], Cell]) -> None:
    """The table, as wide as a terminal, and where the settings come from."""
    title = f"{_title(experiment)} (± standard error)"
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", "method", *SAMPLED.values()):
        table.add_column(heading, justify="left" if heading in ("", "method") else "right", no_wrap=True)
    for cell in cells.values():
        told = [_with_error(name, last_tenth(cell.curves[name])) for name in SAMPLED]
        table.add_row(cell.variant.name, cell.method.title, *told)
    Console().print(table)
    for method in experiment.methods:
        print(f"{method.title}: {method.source}.")


def write_summary(experiment: Experiment, cells: dict[tuple[str, str], Cell], path: Path) -> None:
    """The whole table with bootstrap intervals, and what it takes to make it again, as Markdown."""
    headings = ["", "method", *SAMPLED.values(), "white so far", "exact E", "exact V", "exact GD"]
    rows = []
    for cell in cells.values():
        told = [_with_interval(name, last_tenth(cell.curves[name])) for name in SAMPLED]
        share = optimal_rate(cell.curves)
        told.append("" if share is None else _with_interval("white_rate", share[:, -1]))
        told += [_with_interval(name, cell.exact[name]) if cell.exact else "" for name in EXACT]
        rows.append([cell.variant.name, cell.method.title, *told])
    lines = [headings, ["---"] * len(headings), *rows]
    made = f"{datetime.now(UTC):%Y-%m-%d}; {', '.join(f'{name} {version}' for name, version in versions().items())}"
    command = " ".join(["steadyrl", *sys.argv[1:]])
    text = [
        f"{_title(experiment)}, seeds 0 to {experiment.scale.seeds - 1}.",
        f"    {command}",
        made,
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join(f"- {method.title}: {method.source}." for method in experiment.methods),
    ]
    write_whole(path, ("\n\n".join(text) + "\n").encode())


def write_curves(cells: dict[tuple[str, str], Cell], path: Path, points: int = 40) -> None:
    """The learning curves as numbers: mean and standard error over seeds, at about `points` places, as JSON."""
    told: dict[str, Any] = {}
    for (variant, method), cell in cells.items():
        records = cell.curves["episodes"].shape[1]
        at = np.unique(np.linspace(0, records - 1, min(points, records)).astype(int))
        metrics = {
            name: cell.curves[name][:, at] for name in cell.curves if name not in ("iteration", "episodes", "time")
        }
        means = {name: _rounded(values.mean(axis=0)) for name, values in metrics.items()}
        seeds = len(cell.curves["episodes"])
        errors = {
            n: _rounded(values.std(axis=0, ddof=1) / np.sqrt(seeds)) for n, values in metrics.items() if seeds > 1
        }
        episodes = cell.curves["episodes"][0, at].tolist()
        told.setdefault(variant, {})[method] = {"episodes": episodes, "mean": means, "standard_error": errors}
    write_whole(path, json.dumps(told).encode())


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _title(experiment: Experiment) -> str:
    scale = experiment.scale
    return f"{experiment.title}, last tenth of {scale.episodes:,} episodes, {scale.seeds} seeds"


def _with_error(name: str, values: Any) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} ±{100 * error:.0f} %"
    return f"{values.mean():.1f} ±{error:.1f}"


def _with_interval(name: str, values: Any) -> str:
    low, high = interval(values)
    if name.endswith("_rate"):
        return f"{100 * values.mean():.0f} [{100 * low:.0f}, {100 * high:.0f}] %"
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"
