"""Learning curves: one column for each variant, one row for each measure, a band of one standard error over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from steadyrl.experiment import Experiment

Curves = dict[str, Any]
"""Metric -> [seeds, records]."""

ROWS = {
    "return": "return",
    "gini_deviation": "GD",
    "variance": "variance",
    "goal_rate": "goal rate",
    "red_visit_rate": "red-visit rate",
    "optimal_rate": "optimal risk-aversion rate",
}
COLOURS = ("#4c72b0", "#c44e52", "#dd8452", "#e5ae38", "#55a868", "#8172b3", "#937860", "#64b5cd", "#8c8c8c", "#da8bc3")


def draw_learning_curves(experiment: Experiment, curves: dict[tuple[str, str], Curves], path: Path) -> None:
    """Write the figure to `path`."""
    variants = experiment.variants
    figure = Figure(figsize=(4.2 * len(variants), 2.1 * len(ROWS) + 0.8), layout="constrained")
    axes = figure.subplots(len(ROWS), len(variants), squeeze=False, sharex=True)
    for column, variant in enumerate(variants):
        axes[0, column].set_title(variant.name)
        axes[-1, column].set_xlabel("training episodes")
        for row, (metric, label) in enumerate(ROWS.items()):
            panel = axes[row, column]
            panel.set_ylabel(label if column == 0 else "")
            for number, method in enumerate(experiment.methods):
                _draw(panel, curves[variant.name, method.name], metric, method.title, style(number))
            if metric.endswith("_rate"):
                # The share over all episodes so far grows slowly: its axis ends where the curves do.
                panel.set_ylim(0 if metric == "optimal_rate" else -0.03, None if metric == "optimal_rate" else 1.03)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.supxlabel(f"mean of {experiment.scale.seeds} seeds, shaded: one standard error", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def style(number: int) -> dict[str, Any]:
    """How to draw the line of a method: a colour of its own, and another dash when the colours begin anew."""
    dashes = ("-", "--", ":")
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes[number // len(COLOURS) % len(dashes)]}


def _draw(panel: Axes, curves: Curves, metric: str, title: str, line: dict[str, Any]) -> None:
    values = optimal_rate(curves) if metric == "optimal_rate" else curves.get(metric)
    if values is None:
        return
    episodes, mean = curves["episodes"][0], values.mean(axis=0)
    panel.plot(episodes, mean, label=title, linewidth=1.4, **line)
    if len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        panel.fill_between(episodes, mean - error, mean + error, color=line["color"], alpha=0.2, linewidth=0)


def optimal_rate(curves: Curves) -> Any:
    """The paper's measure: the share of all training episodes so far that took the white path."""
    taken = curves.get("white_path_rate")
    if taken is None:
        return None
    episodes = curves["episodes"]
    since = np.diff(episodes, axis=1, prepend=0)
    return np.cumsum(taken * since, axis=1) / episodes
