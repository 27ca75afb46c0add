"""The table of runs: it sorts, filters, and shows the settings that differ, what failed, and seeds that stand out."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.groups import Group, varied
from steadyrl.reports.page.learning import final_of_run
from steadyrl.reports.page.outliers import outliers
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.reports.page.runs_found import FoundRun
from steadyrl.reports.page.tables import Cell
from steadyrl.reports.run_state import FAILED

_NAMED = {("agent", "agent"), ("env", "env")}
"""Settings that the columns variant and method show already."""


def runs_section(results: Results) -> str:
    """The section, as HTML."""
    keys = _keys([result.group for result in results.groups])
    standing_out = _standing_out(results)
    rows = [_row(result, run, keys, standing_out, results) for result in results.groups for run in result.group.runs]
    headings = ["variant", "method", "remarks", "seed", "episodes", *map(tables.heading, results.measures)]
    headings += [html.escape(name) for _, name in keys]
    text = (
        "Each run, with its measures in the last tenth of training and the settings that differ between runs. A "
        "heading sorts. A name opens the settings, curve, returns and command of a run. A seed stands out if its "
        "return is more than three robust standard deviations from the median of its method's seeds, of which there "
        "must be four."
    )
    return (
        f'<section id="runs"><h2>Runs</h2>\n<p class="soft">{text}</p>\n'
        '<p class="filter"><label>Filter <input type="search" id="filter" placeholder="mg seed 3, failed"></label> '
        '<output id="matching" aria-live="polite"></output></p>\n'
        f'<div class="runs all-runs">{tables.table(headings, rows, texts=3, kind="filtered")}</div>\n'
        f"{_shared(results)}</section>"
    )


def _keys(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """The settings that differ, first those that differ between groups of one agent."""
    agents = dict.fromkeys(group.agent for group in groups)
    within = {key for agent in agents for key in varied([group.settings for group in groups if group.agent == agent])}
    keys = [key for key in varied([group.settings for group in groups]) if key not in _NAMED]
    return sorted(keys, key=lambda key: key not in within)


def _row(
    result: GroupResults,
    run: FoundRun,
    keys: Sequence[tuple[str, str]],
    standing_out: Mapping[str, str],
    results: Results,
) -> list[str | Cell]:
    settings = result.group.settings
    link = f'<a href="#run={results.run_index(run.name)}">{html.escape(result.group.method)}</a>'
    spot = f'<span class="spot" style="background:var(--m{results.palette.index(result.group.method)})"></span>'
    return [
        html.escape(result.group.variant),
        spot + link,
        _remarks(run, standing_out.get(run.name, "")),
        Cell(str(run.seed), run.seed),
        Cell(f"{run.episodes:,}", run.episodes),
        *(tables.value_cell(measure, final_of_run(run, measure)) for measure in results.measures),
        *(html.escape(formatting.setting(settings[key])) if key in settings else "" for key in keys),
    ]


def _remarks(run: FoundRun, standing_out: str) -> str:
    """How the run ended, if not complete, and whether it stands out."""
    remarks = []
    if run.is_damaged:
        remarks.append('<span class="bad">damaged metrics</span>')
    if run.state.is_incomplete:
        kind = "bad" if run.state.name == FAILED else "odd"
        text = f"{run.state.name}: {run.state.reason}" if run.state.reason else run.state.name
        remarks.append(f'<span class="{kind}">{html.escape(text)}</span>')
    if standing_out:
        remarks.append(f'<span class="odd">{html.escape(standing_out)}</span>')
    return "<br>".join(remarks)


def _standing_out(results: Results) -> dict[str, str]:
    """Run -> a few words, for the runs that stand out by their return."""
    words: dict[str, str] = {}
    for _, members in results.by_variant():
        finals = {
            result.index: {
                run.name: final for run in result.group.runs if (final := final_of_run(run, "return")) is not None
            }
            for result in members
        }
        everything = [value for values in finals.values() for value in values.values()]
        spread = max(everything) - min(everything) if everything else 0.0
        for values in finals.values():
            for name, distance in outliers(values, spread).items():
                side = "above" if distance > 0 else "below"
                words[name] = f"stands out: return {formatting.number(abs(distance))} {side} the median"
    return words


def _shared(results: Results) -> str:
    """The settings that all groups have in common."""
    settings = [result.group.settings for result in results.groups]
    if len(settings) < 2:
        return ""
    varying = set(varied(settings))
    everywhere = [key for key in settings[0] if key not in varying and all(key in one for one in settings)]
    common = [f"{name} {formatting.setting(settings[0][section, name])}" for section, name in everywhere]
    if not common:
        return ""
    return (
        "<details><summary>Settings that all runs share</summary>"
        f'<p class="soft">{html.escape(", ".join(common))}.</p></details>'
    )
