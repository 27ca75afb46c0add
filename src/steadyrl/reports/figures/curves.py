"""Learning curves: one column per variant, one row per measure, with a band of one standard error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from steadyrl.reports.palette import Palette

if TYPE_CHECKING:
    from steadyrl.runs.experiment import Experiment, Row

Curves = dict[str, Any]
"""Metric -> [seeds, records]."""


@dataclass(frozen=True)
class Recorded:
    """The recorded curves of one method in one variant; iterates over those of training and of evaluations."""

    training: Curves
    """Metrics of the training episodes."""
    evaluations: Curves
    """Metrics of the evaluation episodes; empty if there are none."""
    notes: tuple[str, ...] = ()
    """A sentence for each run that is left out, because its files are damaged."""
    finals: dict[str, Any] | None = None
    """Heading of a table's column -> [seeds], where the curves have fewer points than were recorded."""

    def __iter__(self) -> Iterator[Curves]:
        return iter((self.training, self.evaluations))

    @property
    def seed_count(self) -> int:
        """The number of runs."""
        return len(next(iter(self.training.values()), ()))


def draw_curves(
    experiment: Experiment,
    recorded: dict[tuple[str, str], Recorded],
    figure_name: str,
    path: Path,
    over: str = "episodes",
) -> None:
    """Draw a figure of the experiment and save it to `path`, with training "episodes" or "timesteps" on the x axis."""
    variants, rows = experiment.variants, experiment.figures[figure_name]
    titles = titles_with_seeds(experiment, recorded)
    palette = Palette({method.name: method.agent for method in experiment.methods})
    figure = Figure(figsize=(4.2 * len(variants), 2.1 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots(len(rows), len(variants), squeeze=False, sharex=True)
    for column, variant in enumerate(variants):
        axes[0, column].set_title(variant.name)
        axes[-1, column].set_xlabel(f"training {over.removeprefix('time')}")
        axes[-1, column].xaxis.set_major_locator(MaxNLocator(5))  # Few ticks: numbers of timesteps are long.
        for number, row in enumerate(rows):
            panel = axes[number, column]
            panel.set_ylabel(row.label if column == 0 else "")
            for method in experiment.methods:
                if (variant.name, method.name) in recorded:
                    line, title = style(palette, method.name), titles[method.name]
                    draw_curve(panel, recorded[variant.name, method.name], row, over, title, line)
            set_rate_limits(panel, row)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
    found = [panel.get_legend_handles_labels() for panel in axes.flat]
    lines = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
    add_legend(figure, lines, columns=2 * len(variants))
    seeds = seeds_text(recorded)
    note = "one seed" if seeds == "1" else f"mean of {seeds} seeds, shaded: one standard error"
    figure.supxlabel(note, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def add_legend(figure: Figure, lines: dict[str, Any], columns: int) -> None:
    """Label -> line, above the panels, in so many columns or, where they would not fit, in fewer."""
    for count in range(columns, 0, -1):
        legend = figure.legend(
            lines.values(), lines.keys(), loc="outside upper center", ncols=count, frameon=False, fontsize="small"
        )
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def seeds_text(recorded: dict[tuple[str, str], Recorded]) -> str:
    """How many seeds the curves are of, such as 10, or 3 to 10 if some runs are not complete or are left out."""
    return range_text([one.seed_count for one in recorded.values() if one.training])


def range_text(counts: Sequence[int]) -> str:
    """For example 10, or 3 to 10."""
    few, many = min(counts, default=0), max(counts, default=0)
    return f"{few:,}" if few == many else f"{few:,} to {many:,}"


def titles_with_seeds(experiment: Experiment, recorded: dict[tuple[str, str], Recorded]) -> dict[str, str]:
    """Method -> its title, with its number of seeds if methods differ in that."""
    titles = {method.name: method.title for method in experiment.methods}
    if "to" not in seeds_text(recorded):
        return titles
    for name, title in titles.items():
        own = {key: one for key, one in recorded.items() if key[1] == name}
        titles[name] = f"{title} ({(seeds := seeds_text(own))} seed{'s' * (seeds != '1')})"
    return titles


def style(palette: Palette, method: str) -> dict[str, Any]:
    """The colour and dashes of a method, which are those of the page."""
    dashes = tuple(float(length) / 2 for length in palette.dash(method).split())
    return {"color": palette.colour(method), "linestyle": (0, dashes) if dashes else "-"}


def set_rate_limits(panel: Axes, row: Row) -> None:
    """The y axis of a rate."""
    if row.metric.endswith("_rate"):
        # The rate over all episodes so far grows slowly, so its axis is not fixed to [0, 1].
        panel.set_ylim(0 if row.so_far else -0.03, None if row.so_far else 1.03)


def draw_curve(panel: Axes, recorded: Recorded, row: Row, over: str, title: str, line: dict[str, Any]) -> None:
    """A measure of one method over training: the mean over seeds, and a band of one standard error."""
    curves: Curves = getattr(recorded, row.of)
    if row.metric not in curves:
        return
    values = so_far(curves, row.metric) if row.so_far else curves[row.metric]
    x, mean = curves[over].mean(axis=0), values.mean(axis=0)
    panel.plot(x, mean, label=title, linewidth=1.4, **line)
    if len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        panel.fill_between(x, mean - error, mean + error, color=line["color"], alpha=0.2, linewidth=0)


def so_far(curves: Curves, metric: str) -> Any:
    """The mean of a metric over all training episodes so far; for white paths, the paper's risk-aversion rate."""
    episodes = curves["episodes"]
    episodes_per_record = np.diff(episodes, axis=1, prepend=0)
    return np.cumsum(curves[metric] * episodes_per_record, axis=1) / np.maximum(episodes, 1)


def last_tenth(values: Any) -> Any:
    """[seeds]: the mean of each seed's last tenth of records."""
    return np.asarray(values[:, -max(1, values.shape[1] // 10) :].mean(axis=1))
