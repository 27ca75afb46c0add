"""The sections of the report about a frontier and a calibration, from the files that the commands write."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrl.evaluation.frontier import RISKS, Frontier, FrontierPoint
from steadyrl.evaluation.frontier_figure import AXES, limits_of, outside
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.plots import Plot, figure_element
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.runs import calibration
from steadyrl.runs import frontier as frontier_runs

_TEXT = (
    "Evaluation episodes of the final policies: mean return against risk, with 95 % intervals. Pale points are "
    "dominated: another has at least the mean and no more risk. The line is the hull: the points on it are the best "
    "for some lambda. A point leads to its runs: settings, curve, histogram and command. "
)


def frontier_sections(root: Path, results: Results) -> list[str]:
    """A section for each file that is there."""
    files = {"Frontier": root / frontier_runs.FILE, "Calibration": root / calibration.FILE}
    return [_section(title, path, results) for title, path in files.items() if path.is_file()]


def _section(title: str, path: Path, results: Results) -> str:
    try:
        frontier = Frontier.load(path)
    except (ValueError, OSError) as error:
        reason = str(error).removeprefix(f"{path} ")
        return f'<section><h2>{title}</h2>\n<div class="notes"><p>{path.name} {html.escape(reason)}</p></div></section>'
    groups = {id(point): _group_of(point, results) for point in frontier.points}
    plots = []
    for measure, label in AXES.items():
        plot = results.data.placeholder(_plot(frontier, measure, groups, results), f"Mean return against {label}")
        plots.append(figure_element(html.escape(label), plot))
    text = _TEXT + _exact_text(frontier) + _outside_text(frontier)
    return (
        f'<section id="{title.lower()}"><h2>{title}</h2>\n<p class="soft">{html.escape(text)}</p>\n'
        f'<div class="grid">{"".join(plots)}</div>\n'
        f'<div class="runs">{_table(frontier, groups, results)}</div></section>'
    )


def _group_of(point: FrontierPoint, results: Results) -> GroupResults | None:
    """The group that holds the first run of a point."""
    for result in results.groups:
        if any(run.name in point.runs for run in result.group.runs):
            return result
    return None


def _exact_text(frontier: Frontier) -> str:
    return "Grey: the exact frontier, which no policy exceeds but by chance in its episodes. " if frontier.exact else ""


def _outside_text(frontier: Frontier) -> str:
    labels = [point.title for point in outside(frontier)]
    return f"Outside the plots, dominated: {'; '.join(labels)}." if labels else ""


def _plot(frontier: Frontier, measure: str, groups: dict[int, GroupResults | None], results: Results) -> Plot:
    """Mean against one risk."""
    hull, behind = frontier.hull_of(measure), frontier.dominated(measure)
    points = []
    for point in frontier.points:
        x, y, group = getattr(point, measure), point.mean, groups[id(point)]
        points.append(
            {
                "g": None if group is None else group.index,
                "m": None if group is None else results.palette.index(group.group.method),
                "name": point.title,
                "x": _ends(x),
                "y": _ends(y),
                "text": f"mean {formatting.number(y.value)} {formatting.interval(y)}, "
                f"{RISKS[measure]} {formatting.number(x.value)} {formatting.interval(x)}",
                "pale": _among(point, behind),
            }
        )
    return {
        "kind": "points",
        "points": points,
        "hull": [[getattr(p, measure).value, p.mean.value] for p in hull],
        "exact": [[getattr(p, measure), p.mean] for p in frontier.exact_hull(measure)],
        "limit": _limit(frontier, measure),
        "xrange": limits_of(frontier, measure),
        "range": limits_of(frontier, "mean"),
    }


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


def _limit(frontier: Frontier, measure: str) -> dict[str, Any] | None:
    """The limit of a calibration, on the axis where it is drawn."""
    limit = frontier.details.get("limit", {})
    bound = limit.get("bound")
    axis = {"mean": "y", measure: "x"}.get(limit.get("measure"))
    known = axis and isinstance(bound, int | float) and not isinstance(bound, bool)
    return {"axis": axis, "bound": bound} if known else None


def _table(frontier: Frontier, groups: dict[int, GroupResults | None], results: Results) -> str:
    hull, behind = frontier.hull, frontier.dominated()
    rows: list[list[str | tables.Cell]] = []
    for point in sorted(frontier.points, key=lambda point: -point.mean.value):
        place = "on the hull" if _among(point, hull) else "dominated" if _among(point, behind) else ""
        group = groups[id(point)]
        name = html.escape(point.title)
        if group is not None:
            name = tables.method_link(group, results.palette, point.title)
        estimates = [tables.estimate_cell(getattr(point, measure)) for measure in ("mean", *RISKS)]
        rows.append([name, place, *estimates, str(point.seeds), str(point.episodes)])
    headings = ["method", "place", "mean", *RISKS.values(), "seeds", "episodes each"]
    return tables.table(headings, rows, texts=2)


def _among(point: FrontierPoint, points: Sequence[FrontierPoint]) -> bool:
    return any(point is other for other in points)
