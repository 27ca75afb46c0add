"""Return distributions of final policies: a row for each method, from its quantiles over all seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from steadyrl.reports.figures.curves import titles_with_seeds
from steadyrl.reports.palette import Palette
from steadyrl.reports.results.results import FinalPolicy, Results

BANDS = ((0.01, 0.99, 0.25), (0.1, 0.9, 0.5), (0.25, 0.75, 0.8))
"""Of each bar: the quantiles that it is between, and its opacity."""


def draw_distributions(results: Results, path: Path) -> bool:
    """Draw one column per variant; False if no final policy was evaluated."""
    experiment, cells = results.experiment, results.cells
    evaluated = {key: [p for p in cell.policies if p is not None] for key, cell in cells.items()}
    methods = [
        method
        for method in experiment.methods
        if any(evaluated.get((v.name, method.name)) for v in experiment.variants)
    ]
    if not methods:
        return False
    palette = Palette({method.name: method.agent for method in experiment.methods})
    titles = titles_with_seeds(experiment, {key: cell.recorded for key, cell in cells.items()})
    columns = len(experiment.variants)
    figure = Figure(figsize=(4.2 * columns + 1.6, 0.42 * len(methods) + 1.6), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharey=True)[0]
    for panel, variant in zip(axes, experiment.variants, strict=True):
        panel.set_title(variant.name)
        panel.set_xlabel("return")
        for height, method in enumerate(methods):
            policies = evaluated.get((variant.name, method.name), [])
            if policies:
                _draw_row(panel, height, policies, palette.colour(method.name))
        panel.set_yticks(range(len(methods)), [titles[method.name] for method in methods])
        panel.set_ylim(len(methods) - 0.4, -0.6)
        panel.grid(alpha=0.25, axis="x")
        panel.spines[["top", "right", "left"]].set_visible(False)
    bars = "bars: 1 to 99, 10 to 90 and 25 to 75 % of all returns"
    note = f"{results.evaluation_episodes:,} episodes of each seed; line: median; points: means of seeds"
    figure.supxlabel(f"{bars}\n{note}", fontsize="small")
    figure.savefig(path, dpi=150)
    return True


def pooled_quantiles(policies: list[FinalPolicy], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of the returns of several seeds together, each of which counts as much."""
    return np.asarray(np.quantile(np.concatenate([policy.quantiles for policy in policies]), levels))


def _draw_row(panel: Axes, height: int, policies: list[FinalPolicy], colour: str) -> None:
    for low, high, opacity in BANDS:
        left, right = pooled_quantiles(policies, np.array([low, high]))
        panel.barh(height, right - left, left=left, height=0.62, color=colour, alpha=opacity, linewidth=0)
    median = float(pooled_quantiles(policies, np.array([0.5]))[0])
    panel.plot([median, median], [height - 0.31, height + 0.31], color="white", linewidth=2.6)
    panel.plot([median, median], [height - 0.31, height + 0.31], color="black", linewidth=1.2)
    means = [policy.returns["mean"] for policy in policies]
    panel.plot(means, [height] * len(means), "o", color="white", markeredgecolor="black", markersize=4)
