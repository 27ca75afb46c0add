"""Learning curves for several values of one setting: a column per method, a curve per value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from steadyrl.evaluation.agent_looks import agent_title
from steadyrl.reports.figures.curves import Recorded, draw_curve, seeds_text, set_rate_limits
from steadyrl.reports.figures.sensitivity import COLOURS

if TYPE_CHECKING:
    from steadyrl.runs.experiment import Experiment

DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Of the curves in a panel, which may lie on each other."""


def draw_lambda_curves(experiment: Experiment, recorded: dict[tuple[str, str], Recorded], path: Path) -> None:
    """Draw the study `experiment.lambda_curves`; values without runs have no curve."""
    study = experiment.lambda_curves
    assert study is not None
    rows = experiment.figures["lambda_curves"]
    columns = [
        (variant, method)
        for variant in experiment.variants
        for method in experiment.methods
        if method.name in study.values and (variant.name in study.variants or not study.variants)
    ]
    figure = Figure(figsize=(3.1 * len(columns), 2.3 * len(rows) + 0.9), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    for column, (variant, method) in enumerate(columns):
        axes[0, column].set_title(f"{agent_title(method.agent)}, {variant.name}", fontsize="medium")
        axes[-1, column].set_xlabel("training episodes")
        axes[-1, column].xaxis.set_major_locator(MaxNLocator(4))
        for number, row in enumerate(rows):
            panel = axes[number, column]
            panel.set_ylabel(row.label if column == 0 else "")
            for place, value in enumerate(study.values[method.name]):
                look = {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}
                star = "*" * (value == method.settings[study.setting])
                if one := recorded.get((variant.name, f"{method.name}={value:g}")):
                    draw_curve(panel, one, row, "episodes", f"lambda {value:g}{star}", look)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
        axes[0, column].legend(frameon=False, fontsize="small", loc="center right")
    for panel, row in zip(axes[:, 0], rows, strict=True):  # After all curves: the panels of a row share their axis.
        set_rate_limits(panel, row)
        if row.so_far:
            panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])  # A rate of 0 is a line above the axis.
    seeds = seeds_text(recorded)
    note = "one seed" if seeds == "1" else f"mean of {seeds} seeds, shaded: one standard error"
    figure.supxlabel(f"{note}; *: value in the main experiment", fontsize="small")
    figure.savefig(path, dpi=150)
