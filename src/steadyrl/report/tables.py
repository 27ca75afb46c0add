"""The tables of the page, as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from steadyrl.report import numerals
from steadyrl.report.groups import Group, differing
from steadyrl.report.learning import final_of
from steadyrl.report.panels import Palette
from steadyrl.report.playing import MARKED
from steadyrl.risk_report import Estimate

HEADINGS = {
    "return": "return",
    "gini_deviation": "GD",
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
    "optimal_rate": "optimal rate",
}
_MARK_HEADINGS = {"mean": "mean", "gini_deviation": "GD", "cvar_10": "CVaR 10 %"}


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1, below: Sequence[str] = ()) -> str:
    """Cells are HTML; the first `texts` columns are text and the rest numbers. It scrolls within its own width.

    `below` has a line to stand under each row.
    """
    kinds = ["text" if index < texts else "number" for index in range(len(headings))]
    body = [_row("td", kinds, row) for row in rows]
    for index, line in enumerate(below):
        body[index] += f'<tr class="below"><td class="text" colspan="{len(headings)}"><div>{line}</div></td></tr>\n'
    head = f"<thead>{_row('th', kinds, headings)}</thead>"
    return f'<div class="scroll" tabindex="0"><table>{head}<tbody>{"".join(body)}</tbody></table></div>'


def method_name(method: str, palette: Palette) -> str:
    """The method beside a spot of its colour."""
    name = html.escape(method).replace("_", "_<wbr>")  # Long names may break there.
    return f'<span class="spot" style="background:{palette.colour(method)}"></span>{name}'


def marks_table(
    marks: Mapping[str, Mapping[str, Estimate]], facts: Mapping[str, Mapping[str, float]], palette: Palette
) -> str:
    """Mean, GD and CVaR of each method in one variant, with their intervals, and the environment's facts."""
    names = list(dict.fromkeys(name for stated in facts.values() for name in stated))
    rows = [
        [
            method_name(method, palette),
            *(_estimate(estimates[name]) for name in MARKED),
            *(_fact(name, facts[method].get(name)) for name in names),
        ]
        for method, estimates in marks.items()
    ]
    headings = ["method", *(_MARK_HEADINGS[name] for name in MARKED), *map(heading, names)]
    return table(headings, rows)


def runs_table(groups: Sequence[Group], measures: Sequence[str], palette: Palette) -> str:
    """A row for each group: how it ended; and under it the settings in which it differs from others."""
    finals = {measure: [final_of(group, measure) for group in groups] for measure in measures}
    rows = [
        [
            html.escape(group.variant),
            method_name(group.method, palette),
            str(len(group.runs)),
            numerals.span([run.episodes for run in group.runs]),
            *(_final(finals[measure], index, measure) for measure in measures),
        ]
        for index, group in enumerate(groups)
    ]
    keys = differing([group.settings for group in groups])
    headings = ["variant", "method", "seeds", "episodes", *map(heading, measures)]
    return table(headings, rows, texts=2, below=[_settings(group, keys) for group in groups] if keys else ())


def heading(measure: str) -> str:
    """A measure's short name."""
    return html.escape(HEADINGS.get(measure, measure.removesuffix("_rate").replace("_", " ")))


def _estimate(estimate: Estimate) -> str:
    return f'{numerals.number(estimate.value)}<span class="interval">{numerals.interval(estimate)}</span>'


def _fact(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return numerals.share(value) if numerals.is_rate(name) else numerals.number(value)


def _final(column: Sequence[tuple[float, float | None] | None], index: int, measure: str) -> str:
    final = column[index]
    if final is None:
        return ""
    largest = max(abs(mean) for mean, _ in filter(None, column))
    return numerals.with_error(*final, measure, largest)


def _settings(group: Group, keys: Sequence[tuple[str, str]]) -> str:
    """The settings under `keys` that the group has."""
    settings = group.settings
    return " ".join(
        f'<span class="setting">{html.escape(key[1])}&nbsp;<b>{html.escape(numerals.setting(settings[key]))}</b></span>'
        for key in keys
        if key in settings
    )


def _row(cell: str, kinds: Sequence[str], content: Sequence[str]) -> str:
    cells = (f'<{cell} class="{kind}">{text}</{cell}>' for kind, text in zip(kinds, content, strict=True))
    return f"<tr>{''.join(cells)}</tr>\n"
