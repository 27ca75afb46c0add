"""The tables of the report, as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.measures import DISCOUNTED_GD, GD
from steadyrl.reports.page import formatting
from steadyrl.reports.page.distributions import MARKED
from steadyrl.reports.page.groups import Group, differing
from steadyrl.reports.page.learning import final_of
from steadyrl.reports.page.panels import Palette

HEADINGS = {
    "return": "return",
    "undiscounted_gini_deviation": GD,
    "gini_deviation": DISCOUNTED_GD,
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
    "optimal_rate": "optimal rate",
}
_MARK_HEADINGS = {"mean": "mean", "gini_deviation": GD, "cvar_10": "CVaR 10 %"}


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1, below: Sequence[str] = ()) -> str:
    """A table in a scrollable container.

    Args:
        headings: Column headings, as HTML.
        rows: Cells, as HTML.
        texts: Number of leading text columns; the others are numbers.
        below: A line of HTML to show below each row.
    """
    kinds = ["text" if index < texts else "number" for index in range(len(headings))]
    body = [_row("td", kinds, row) for row in rows]
    for index, line in enumerate(below):
        body[index] += f'<tr class="below"><td class="text" colspan="{len(headings)}"><div>{line}</div></td></tr>\n'
    head = f"<thead>{_row('th', kinds, headings)}</thead>"
    return f'<div class="scroll" tabindex="0"><table>{head}<tbody>{"".join(body)}</tbody></table></div>'


def method_name(method: str, palette: Palette) -> str:
    """The method name after a dot in its colour."""
    name = html.escape(method).replace("_", "_<wbr>")  # Allows a line break.
    return f'<span class="spot" style="background:{palette.colour(method)}"></span>{name}'


def marks_table(
    marks: Mapping[str, Mapping[str, Estimate]], episode_metrics: Mapping[str, Mapping[str, float]], palette: Palette
) -> str:
    """Mean, GD and CVaR of each method in one variant, with confidence intervals, and the episode metrics."""
    names = list(dict.fromkeys(name for metrics in episode_metrics.values() for name in metrics))
    rows = [
        [
            method_name(method, palette),
            *(estimate_cell(estimates[name]) for name in MARKED),
            *(_metric(name, episode_metrics[method].get(name)) for name in names),
        ]
        for method, estimates in marks.items()
    ]
    headings = ["method", *(_MARK_HEADINGS[name] for name in MARKED), *map(heading, names)]
    return table(headings, rows)


def runs_table(groups: Sequence[Group], measures: Sequence[str], palette: Palette) -> str:
    """A row for each group with its final measures and, below it, the settings that differ between groups."""
    finals = {measure: [final_of(group, measure) for group in groups] for measure in measures}
    rows = [
        [
            html.escape(group.variant),
            method_name(group.method, palette),
            str(len(group.runs)),
            formatting.span([run.episodes for run in group.runs]),
            *(_final(finals[measure], index, measure) for measure in measures),
        ]
        for index, group in enumerate(groups)
    ]
    keys = differing([group.settings for group in groups])
    headings = ["variant", "method", "seeds", "episodes", *map(heading, measures)]
    return table(headings, rows, texts=2, below=[_settings(group, keys) for group in groups] if keys else ())


def heading(measure: str) -> str:
    """The short name of a measure."""
    return html.escape(HEADINGS.get(measure, measure.removesuffix("_rate").replace("_", " ")))


def estimate_cell(estimate: Estimate) -> str:
    """The value, and its interval below it."""
    return f'{formatting.number(estimate.value)}<span class="interval">{formatting.interval(estimate)}</span>'


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return formatting.percent(value) if formatting.is_rate(name) else formatting.number(value)


def _final(column: Sequence[tuple[float, float | None] | None], index: int, measure: str) -> str:
    final = column[index]
    if final is None:
        return ""
    largest = max(abs(mean) for mean, _ in filter(None, column))
    return formatting.with_error(*final, measure, largest)


def _settings(group: Group, keys: Sequence[tuple[str, str]]) -> str:
    """The settings of the group with these keys."""
    texts = [(key[1], formatting.setting(group.settings[key])) for key in keys if key in group.settings]
    return " ".join(
        f'<span class="setting">{html.escape(name)}&nbsp;<b>{html.escape(text)}</b></span>' for name, text in texts
    )


def _row(cell: str, kinds: Sequence[str], content: Sequence[str]) -> str:
    cells = (f'<{cell} class="{kind}">{text}</{cell}>' for kind, text in zip(kinds, content, strict=True))
    return f"<tr>{''.join(cells)}</tr>\n"
