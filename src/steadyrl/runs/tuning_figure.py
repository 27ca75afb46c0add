"""The trials of a search as a picture: the objective over trials, and against each setting."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyrl.evaluation.histogram import check_picture
from steadyrl.runs.tuning_results import Trial, Tuning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
DONE, BEST, PRUNED = "#4c72b0", "#c44e52", "#9aa5b1"


def draw_tuning(found: Tuning, path: str | Path) -> Path:
    """Draw the objective of each complete trial, the best one so far, and slices along each setting."""
    from matplotlib.figure import Figure

    path = check_picture(path)
    names = list(found.plan.space)
    rows = math.ceil((1 + len(names)) / COLUMNS)
    figure = Figure(figsize=(3.4 * COLUMNS, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False).ravel()
    complete, best = sorted(found.complete, key=lambda trial: trial.number), found.best
    _draw_history(panels[0], found, complete)
    for panel, name in zip(panels[1:], names, strict=False):
        _draw_slice(panel, found, name, complete, best)
    for panel in panels[1 + len(names) :]:
        panel.set_visible(False)
    for panel in panels:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    for row in range(rows):
        panels[row * COLUMNS].set_ylabel("objective")
    plan = found.plan
    figure.suptitle(
        f"{plan.agent} in {plan.env}: {plan.objective_text()}, {len(plan.seeds)} seeds a trial", fontsize=11
    )
    figure.savefig(path, dpi=120)
    return path


def _draw_history(panel: Axes, found: Tuning, complete: list[Trial]) -> None:
    numbers, values = [trial.number for trial in complete], [trial.values[0] for trial in complete]
    so_far = [max(values[: k + 1]) for k in range(len(values))]
    panel.plot(numbers, values, "o", color=DONE, ms=5, label="complete")
    panel.step(numbers, so_far, where="post", color=BEST, lw=1.3, label="best so far")
    low = min(values)
    for state, marker, label in (("pruned", "|", "pruned"), ("fail", "x", "failed")):
        others = [trial.number for trial in found.trials if trial.state == state]
        if others:
            panel.plot(others, [low] * len(others), marker, color=PRUNED, ms=7, label=label)
    panel.set_xlabel("trial")
    panel.legend(frameon=False, fontsize=8)


def _draw_slice(panel: Axes, found: Tuning, name: str, complete: list[Trial], best: Trial) -> None:
    dimension = found.plan.space[name]
    if dimension.kind == "choice":
        labels = [str(choice) for choice in dimension.choices]
        panel.set_xticks(range(len(labels)), labels, fontsize=8)
        panel.set_xlim(-0.5, len(labels) - 0.5)
    else:
        panel.set_xscale("log" if dimension.log else "linear")
        margin = (dimension.high / dimension.low) ** 0.03 if dimension.log else 0.03 * (dimension.high - dimension.low)
        ends = (dimension.low, dimension.high)
        panel.set_xlim(
            *((ends[0] / margin, ends[1] * margin) if dimension.log else (ends[0] - margin, ends[1] + margin))
        )

    def place(trial: Trial) -> Any:
        value = trial.settings[name]
        return dimension.choices.index(value) if dimension.kind == "choice" else value

    for trial in complete:
        chosen = trial is best
        panel.plot(
            place(trial),
            trial.values[0],
            "*" if chosen else "o",
            color=BEST if chosen else DONE,
            ms=11 if chosen else 5,
        )
    panel.set_xlabel(name, fontsize=9)
