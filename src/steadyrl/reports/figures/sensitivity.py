"""Sensitivity to one setting: measures in the last tenth of training over its values, for each method."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from steadyrl.evaluation.agent_looks import agent_title
from steadyrl.reports.figures.curves import Curves, last_tenth, range_text

if TYPE_CHECKING:
    from steadyrl.runs.experiment import Experiment

COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b3")


def draw_sensitivity(experiment: Experiment, curves: dict[tuple[str, str], Curves], path: Path) -> None:
    """Draw a column per method with runs, a row per measure and a line per variant, with bars of one standard error."""
    sensitivity = experiment.sensitivity
    assert sensitivity is not None
    rows = experiment.figures["sensitivity"]
    trained = {name.partition("=")[0] for _, name in curves}
    methods = [method for method in experiment.methods if method.name in sensitivity.values and method.name in trained]
    figure = Figure(figsize=(3.2 * len(methods), 2.2 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots(len(rows), len(methods), squeeze=False, sharex="col", sharey="row")
    for column, method in enumerate(methods):
        values = list(sensitivity.values[method.name])
        axes[0, column].set_title(agent_title(method.agent))
        axes[-1, column].set_xlabel("lambda")
        for number, row in enumerate(rows):
            panel = axes[number, column]
            panel.set_ylabel(row.label if column == 0 else "")
            if min(values) > 0 and max(values) / min(values) > 10:
                panel.set_xscale("log")
            for colour, variant in zip(COLOURS, experiment.variants, strict=False):
                cells = [curves.get((variant.name, f"{method.name}={value:g}"), {}) for value in values]
                finals = [_final(cell, row.metric) for cell in cells]
                means = [final.mean() for final in finals]
                errors = [final.std(ddof=1) / np.sqrt(len(final)) if len(final) > 1 else 0.0 for final in finals]
                panel.errorbar(values, means, errors, color=colour, label=variant.name, marker="o", ms=3.5, capsize=2)
            panel.axvline(method.settings[sensitivity.setting], color="grey", linestyle=":", linewidth=1)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.supxlabel(f"{budget_and_seeds(curves.values())}; dotted: value in the main experiment", fontsize="small")
    figure.savefig(path, dpi=150)


def budget_and_seeds(curves: Iterable[Curves]) -> str:
    """For how many episodes was trained, and with how many seeds, as the curves show it."""
    found = [one["episodes"] for one in curves if "episodes" in one]
    episodes = range_text([int(one[:, -1].max()) for one in found])
    seeds = range_text([len(one) for one in found])
    return f"last tenth of {episodes} episodes, mean and standard error of {seeds} seed{'s' * (seeds != '1')}"


def _final(curves: Curves, metric: str) -> NDArray[np.float64]:
    """[seeds]: the last tenth of training; a NaN, which is not drawn, if all runs are left out."""
    return np.asarray(last_tenth(curves[metric])) if metric in curves else np.array([np.nan])
