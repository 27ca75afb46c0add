"""The tables of the report, as HTML; page.js sorts and filters those that can be."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.measures import DISCOUNTED_GD, GD
from steadyrl.reports.page import formatting
from steadyrl.reports.page.evaluation import MARKED
from steadyrl.reports.page.learning import final_of
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.reports.palette import Palette

HEADINGS = {
    "return": "return",
    "undiscounted_gini_deviation": GD,
    "gini_deviation": DISCOUNTED_GD,
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
    "optimal_rate": "optimal risk-aversion rate",
}
_MARK_HEADINGS = {"mean": "mean", "gini_deviation": GD, "cvar_10": "CVaR 10 %"}


class Cell(NamedTuple):
    """A cell with the value that its column is sorted by."""

    content: str
    """HTML."""
    value: float | None = None


def table(headings: Sequence[str], rows: Sequence[Sequence[str | Cell]], texts: int = 1, kind: str = "") -> str:
    """A table in a scrollable container, whose columns can be sorted.

    Args:
        headings: Column headings, as HTML.
        rows: Cells, as HTML.
        texts: Number of leading text columns; the others are numbers.
        kind: A class of the table.
    """
    kinds = ["text" if index < texts else "number" for index in range(len(headings))]
    head = "".join(
        f'<th scope="col" class="{kind}" aria-sort="none">{text}</th>'
        for kind, text in zip(kinds, headings, strict=True)
    )
    body = "".join(_row(kinds, row) for row in rows)
    name = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table"><table{name}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(kinds: Sequence[str], cells: Sequence[str | Cell]) -> str:
    parts = []
    for kind, cell in zip(kinds, cells, strict=True):
        content, value = cell if isinstance(cell, Cell) else (cell, None)
        key = "" if value is None else f' data-value="{value:.9g}"'
        parts.append(f'<td class="{kind}"{key}>{content}</td>')
    return f"<tr>{''.join(parts)}</tr>\n"


def method_link(result: GroupResults, palette: Palette, name: str = "") -> str:
    """The method name after a dot in its colour, leading to its details."""
    shown = html.escape(name or result.group.method).replace("_", "_<wbr>")  # Allows a line break.
    return (
        f'<span class="spot" style="background:var(--m{palette.index(result.group.method)})"></span>'
        f'<a href="#group={result.index}">{shown}</a>'
    )


def marks_table(evaluated: Sequence[GroupResults], palette: Palette) -> str:
    """Mean, GD and CVaR of each method in one variant, with confidence intervals, and the episode metrics."""
    names = list(
        dict.fromkeys(
            name for result in evaluated for agent in result.agents.values() for name in agent.episode_metrics
        )
    )
    rows = [
        [
            method_link(result, palette),
            *(estimate_cell(result.marks[name]) for name in MARKED),
            *(_metric(name, result) for name in names),
        ]
        for result in evaluated
    ]
    headings = ["method", *(_MARK_HEADINGS[name] for name in MARKED), *map(heading, names)]
    return table(headings, rows)


def finals_table(results: Results) -> str:
    """A row for each group with its measures at the end of training."""
    groups = [result.group for result in results.groups]
    finals = {measure: [final_of(group, measure) for group in groups] for measure in results.measures}
    rows: list[list[str | Cell]] = [
        [
            html.escape(result.group.variant),
            method_link(result, results.palette),
            str(len(result.group.runs)),
            formatting.span([run.episodes for run in result.group.runs]),
            *(_final(finals[measure], result.index, measure) for measure in results.measures),
        ]
        for result in results.groups
    ]
    headings = ["variant", "method", "seeds", "episodes", *map(heading, results.measures)]
    return table(headings, rows, texts=2)


def heading(measure: str) -> str:
    """The short name of a measure."""
    return html.escape(HEADINGS.get(measure, measure.removesuffix("_rate").replace("_", " ")))


def estimate_cell(estimate: Estimate) -> Cell:
    """The value, and its interval below it."""
    content = f'{formatting.number(estimate.value)}<span class="interval">{formatting.interval(estimate)}</span>'
    return Cell(content, estimate.value)


def value_cell(measure: str, value: float | None) -> str | Cell:
    """A value as its measure is written; nothing if there is none."""
    if value is None:
        return ""
    return Cell(formatting.percent(value) if formatting.is_rate(measure) else formatting.number(value), value)


def _metric(name: str, result: GroupResults) -> str | Cell:
    agents = list(result.agents.values())
    if not all(name in agent.episode_metrics for agent in agents):
        return ""
    return value_cell(name, float(np.mean([agent.episode_metrics[name].mean() for agent in agents])))


def _final(column: Sequence[tuple[float, float | None] | None], index: int, measure: str) -> str | Cell:
    final = column[index]
    if final is None:
        return ""
    largest = max(abs(mean) for mean, _ in filter(None, column))
    return Cell(formatting.with_error(*final, measure, largest), final[0])
