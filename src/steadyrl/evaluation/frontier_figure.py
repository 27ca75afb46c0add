"""The frontier as a Matplotlib figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrl.evaluation.agent_looks import agent_colours, agent_title
from steadyrl.evaluation.histogram import check_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from steadyrl.evaluation.frontier import Frontier, FrontierPoint

AXES = {
    "gini_deviation": "Gini deviation (less is steadier)",
    "standard_deviation": "standard deviation",
    "cvar_10": "CVaR 10 %: mean of the worst tenth (more is safer)",
}
MARKERS = "osD^vPX"
LIMIT = "#b3261e"
"""The colour of the limit of a calibration; no agent has it."""
PALE = 0.3
"""Opacity of dominated points."""
REACH = 1.5
"""Dominated points further than this many times the extent of the frontier from it are not drawn."""


def draw_frontier(frontier: Frontier, path: str | Path) -> Path:
    """Draw mean against each risk: points with intervals, the hull, and beneath them the exact frontier."""
    from matplotlib.figure import Figure  # Imported here: a table does not need Matplotlib.
    from matplotlib.ticker import MaxNLocator

    path = check_picture(path)
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    panels = figure.subplots(1, len(AXES), sharey=True)
    for panel, (measure, label) in zip(panels, AXES.items(), strict=True):
        _draw_panel(panel, frontier, measure)
        panel.set_xlim(limits_of(frontier, measure))
        panel.set_xlabel(label)
        panel.xaxis.set_major_locator(MaxNLocator(6))
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylim(limits_of(frontier, "mean"))
    panels[0].set_ylabel("mean return")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=7, frameon=False)
    figure.supxlabel(_caption(frontier), fontsize="small")
    figure.savefig(path, dpi=130)
    return path


def _draw_panel(panel: Axes, frontier: Frontier, measure: str) -> None:
    hull, behind = frontier.hull_of(measure), frontier.dominated(measure)
    if exact := frontier.exact_hull(measure):
        x, y = [getattr(point, measure) for point in exact], [point.mean for point in exact]
        panel.plot(x, y, color="#9aa5b1", lw=6, alpha=0.45, solid_capstyle="round", zorder=1, label="exact frontier")
        panel.plot(x, y, "s", color="#9aa5b1", ms=9, alpha=0.8, zorder=1)
    x, y = [getattr(point, measure).value for point in hull], [point.mean.value for point in hull]
    panel.plot(x, y, "-", color="#1f2933", lw=1.2, zorder=2, label="hull")
    agents = dict.fromkeys(point.agent for point in frontier.points)
    colours = agent_colours(agents)
    for number, agent in enumerate(agents):
        style: dict[str, Any] = {"color": colours[agent], "marker": MARKERS[number % len(MARKERS)]}
        panel.plot([], [], ls="", ms=6, label=agent_title(agent), **style)
        for point in (point for point in frontier.points if point.agent == agent):
            pale = any(point is other for other in behind)
            _draw_point(panel, point, measure, PALE if pale else 1.0, style)
    _label_points(panel, frontier, measure)
    limit = frontier.details.get("limit")
    if limit:
        line: dict[str, Any] = {"color": LIMIT, "ls": ":", "lw": 1.4, "zorder": 1}
        if limit["measure"] == "mean":
            panel.axhline(limit["bound"], label="limit", **line)
        elif limit["measure"] == measure:
            panel.axvline(limit["bound"], label="limit", **line)


def _draw_point(panel: Axes, point: FrontierPoint, measure: str, alpha: float, style: dict[str, Any]) -> None:
    x, y = getattr(point, measure), point.mean
    x_error, y_error = ([[max(e.value - e.low, 0)], [max(e.high - e.value, 0)]] for e in (x, y))
    panel.errorbar(
        x.value, y.value, y_error, x_error, ms=6, lw=0, elinewidth=1, capsize=2, alpha=alpha, zorder=3, **style
    )


def _label_points(panel: Axes, frontier: Frontier, measure: str) -> None:
    """The lambdas of points that are not dominated, those at nearly the same place in one label."""
    from matplotlib.patheffects import withStroke

    behind = frontier.dominated(measure)
    ahead = [point for point in frontier.points if not any(point is other for other in behind)]
    labelled = [point for point in ahead if point.risk_aversion is not None]
    if not labelled:
        return
    x = np.array([getattr(point, measure).value for point in labelled])
    y = np.array([point.mean.value for point in labelled])
    scale = max(np.ptp(x), 1e-9), max(np.ptp(y), 1e-9)
    remaining = list(range(len(labelled)))
    while remaining:
        first = remaining[0]
        near = [i for i in remaining if np.hypot((x[i] - x[first]) / scale[0], (y[i] - y[first]) / scale[1]) < 0.08]
        remaining = [i for i in remaining if i not in near]
        values = sorted({labelled[i].risk_aversion or 0.0 for i in near})
        text = ", ".join(f"{value:.3g}" for value in (values if len(values) < 4 else (values[0], values[-1])))
        text = text.replace(", ", " to ") if len(values) > 3 else text
        on_the_left = x[first] < sum(limits_of(frontier, measure)) / 2
        place: dict[str, Any] = {"xytext": (7 if on_the_left else -7, 7), "ha": "left" if on_the_left else "right"}
        place |= {"textcoords": "offset points", "fontsize": 8, "zorder": 4}
        place["path_effects"] = [withStroke(linewidth=3, foreground="white")]  # Readable across the hull.
        panel.annotate(f"$\\lambda$ {text}", (x[first], y[first]), **place)


def limits_of(frontier: Frontier, measure: str) -> tuple[float, float]:
    """Ends of an axis that shows the frontier, the limit, and the dominated points that are near them."""
    behind = _behind(frontier)
    shown = [getattr(p, measure) for p in frontier.points if not any(p is other for other in behind)]
    exact = [getattr(p, measure) for p in frontier.exact]
    limit = frontier.details.get("limit", {})
    exact += [limit["bound"]] if limit.get("measure") == measure else []
    low, high = min([*exact, *(e.low for e in shown)]), max([*exact, *(e.high for e in shown)])
    extent = max(high - low, 0.05 * max(abs(low), abs(high)), 1e-9)
    near = [e for p in behind if low - REACH * extent <= (e := getattr(p, measure)).value <= high + REACH * extent]
    low, high = min([low, *(e.value for e in near)]), max([high, *(e.value for e in near)])
    margin = 0.06 * (high - low or extent)
    return low - margin, high + margin


def outside(frontier: Frontier) -> list[FrontierPoint]:
    """The points that lie beyond the limits of an axis; all of them are dominated."""
    limits = {measure: limits_of(frontier, measure) for measure in ("mean", *AXES)}
    return [
        point
        for point in frontier.points
        if any(not low <= getattr(point, measure).value <= high for measure, (low, high) in limits.items())
    ]


def _behind(frontier: Frontier) -> list[FrontierPoint]:
    """The points that are dominated by every measure of risk."""
    several = [frontier.dominated(measure) for measure in AXES]
    return [point for point in several[0] if all(any(point is other for other in some) for some in several)]


def _caption(frontier: Frontier) -> str:
    seeds = max(point.seeds for point in frontier.points)
    options = ", ".join(f"{name}={value}" for name, value in frontier.env_options.items() if "\n" not in str(value))
    text = f"{frontier.env}{f' ({options})' if options else ''}: {seeds} seed{'s' * (seeds > 1)}; bars: 95 % intervals"
    text += " over seeds and episodes" if seeds > 1 else " over episodes"
    text += "; pale: dominated"
    if left_out := [point.title for point in outside(frontier)]:
        more = f" and {len(left_out) - 4} more" if len(left_out) > 4 else ""
        text += f"\noutside the picture, dominated: {'; '.join(left_out[:4])}{more}"
    return text
