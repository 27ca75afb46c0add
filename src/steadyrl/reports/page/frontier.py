"""The sections of the report about a frontier and a calibration, from the files that the commands write."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrl.evaluation.frontier import RISKS, Frontier, FrontierPoint
from steadyrl.evaluation.frontier_figure import AXES, COLOURS, limits_of, outside
from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.elements import figure_element, plot_placeholder
from steadyrl.reports.page.panels import FAINT, Figure, base_layout, plain
from steadyrl.runs import calibration
from steadyrl.runs import frontier as frontier_runs

HEIGHT = 340
_EXACT, _HULL, _LIMIT = "#9aa5b1", "#1f2933", "#c44e52"
_TEXT = (
    "Evaluation episodes of the final policies: mean return against risk, with 95 % intervals. Pale points are "
    "dominated: another has at least the mean and no more risk. The line is the hull: the points on it are the best "
    "for some lambda. "
)


def frontier_sections(root: Path, figures: list[Figure]) -> list[str]:
    """A section for each file that is there; its plots are added to `figures`."""
    files = {"Frontier": root / frontier_runs.FILE, "Calibration": root / calibration.FILE}
    return [_section(title, path, figures) for title, path in files.items() if path.is_file()]


def _section(title: str, path: Path, figures: list[Figure]) -> str:
    try:
        frontier = Frontier.load(path)
    except (ValueError, OSError) as error:
        reason = str(error).removeprefix(f"{path} ")
        return f'<section><h2>{title}</h2>\n<div class="notes"><p>{path.name} {html.escape(reason)}</p></div></section>'
    plots = []
    for measure, label in AXES.items():
        plot = plot_placeholder(_panel(frontier, measure), f"Mean against {label}", figures)
        plots.append(figure_element(html.escape(label), plot))
    text = _TEXT + _exact_text(frontier) + _outside_text(frontier)
    return (
        f'<section><h2>{title}</h2>\n<p class="soft">{html.escape(text)}</p>\n{_key(frontier)}\n'
        f'<div class="grid">{"".join(plots)}</div>\n'
        f'<div class="runs" style="margin-top:12px">{_table(frontier)}</div></section>'
    )


def _exact_text(frontier: Frontier) -> str:
    return "Grey: the exact frontier, which no policy exceeds but by chance in its episodes. " if frontier.exact else ""


def _outside_text(frontier: Frontier) -> str:
    labels = [point.label for point in outside(frontier)]
    return f"Outside the plots, dominated: {', '.join(labels)}." if labels else ""


def _colours(frontier: Frontier) -> dict[str, str]:
    agents = dict.fromkeys(point.agent for point in frontier.points)
    return {agent: COLOURS[number % len(COLOURS)] for number, agent in enumerate(agents)}


def _key(frontier: Frontier) -> str:
    spots = [f"<li>{_spot(colour)}{html.escape(agent)}</li>" for agent, colour in _colours(frontier).items()]
    return f'<ul class="key">{"".join(spots)}</ul>'


def _spot(colour: str) -> str:
    return f'<span class="spot" style="background:{colour}"></span>'


def _panel(frontier: Frontier, measure: str) -> Figure:
    """Mean against one risk."""
    traces: list[dict[str, Any]] = []
    exact, hull = frontier.exact_hull(measure), frontier.hull_of(measure)
    if exact:
        place = {"x": [getattr(p, measure) for p in exact], "y": [p.mean for p in exact]}
        line = {"line": {"color": _EXACT, "width": 6}, "marker": {"color": _EXACT, "size": 10, "symbol": "square"}}
        hover = {"hovertemplate": "exact: mean %{y:.4~g} at %{x:.4~g}<extra></extra>", "opacity": 0.6}
        traces.append({**place, "mode": "lines+markers", **line, **hover})
    place = {"x": [getattr(p, measure).value for p in hull], "y": [p.mean.value for p in hull]}
    traces.append({**place, "mode": "lines", "line": {"color": _HULL, "width": 1.4}, "hoverinfo": "skip"})
    behind = frontier.dominated(measure)
    colours = _colours(frontier)
    for point in frontier.points:
        traces.append(_point_trace(point, measure, colours[point.agent], 0.3 if _among(point, behind) else 1.0))
    axis = {"gridcolor": FAINT, "zeroline": False, "nticks": 6, "automargin": True}
    x_axis = {**axis, "range": list(limits_of(frontier, measure))}
    y_axis = {**axis, "range": list(limits_of(frontier, "mean")), "title": {"text": "mean return", "standoff": 6}}
    layout = base_layout(HEIGHT, xaxis=x_axis, yaxis=y_axis, shapes=_limit_line(frontier, measure))
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def _limit_line(frontier: Frontier, measure: str) -> list[dict[str, Any]]:
    limit = frontier.details.get("limit", {})
    line = {"type": "line", "line": {"color": _LIMIT, "width": 1.5, "dash": "dot"}}
    bound = limit.get("bound")
    if limit.get("measure") == "mean":
        return [{**line, "xref": "paper", "x0": 0, "x1": 1, "y0": bound, "y1": bound}]
    if limit.get("measure") == measure:
        return [{**line, "yref": "paper", "y0": 0, "y1": 1, "x0": bound, "x1": bound}]
    return []


def _point_trace(point: FrontierPoint, measure: str, colour: str, opacity: float) -> dict[str, Any]:
    x, y = getattr(point, measure), point.mean
    text = f"<b>{plain(point.label)}</b><br>mean {formatting.number(y.value)} {formatting.interval(y)}"
    text += f"<br>{RISKS[measure]} {formatting.number(x.value)} {formatting.interval(x)}"
    trace: dict[str, Any] = {"x": [x.value], "y": [y.value], "mode": "markers", "opacity": opacity}
    for axis, estimate in (("error_x", x), ("error_y", y)):
        up, down = max(estimate.high - estimate.value, 0), max(estimate.value - estimate.low, 0)
        trace[axis] = {"array": [up], "arrayminus": [down], "color": colour, "thickness": 1, "width": 3}
    return {**trace, "marker": {"color": colour, "size": 9}, "hovertext": [text], "hoverinfo": "text"}


def _table(frontier: Frontier) -> str:
    colours, hull, behind = _colours(frontier), frontier.hull, frontier.dominated()
    rows = []
    for point in sorted(frontier.points, key=lambda point: -point.mean.value):
        place = (
            "on the hull" if any(point is p for p in hull) else "dominated" if any(point is p for p in behind) else ""
        )
        aversion = "" if point.risk_aversion is None else f"{point.risk_aversion:.4g}"
        estimates = [tables.estimate_cell(getattr(point, name)) for name in ("mean", *RISKS)]
        name = f"{_spot(colours[point.agent])}{html.escape(point.agent)}"
        rows.append([name, place, aversion, *estimates, str(point.seeds), str(point.episodes)])
    headings = ["agent", "", "lambda", "mean", *RISKS.values(), "seeds", "episodes each"]
    return tables.table(headings, rows, texts=2)


def _among(point: FrontierPoint, points: Sequence[FrontierPoint]) -> bool:
    return any(point is other for other in points)
