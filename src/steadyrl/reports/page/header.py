"""The top of the page: what came out, of what, and how it was made."""

from __future__ import annotations

import html
from collections.abc import Sequence

from steadyrl.reports.page import formatting
from steadyrl.reports.page.learning import final_of
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.reports.page.runs_found import Notes
from steadyrl.reports.run_state import FAILED, RUNNING

MAX_LISTED = 5
"""Maximum number of commands, or of run names in a note, that are listed."""


def header(name: str, results: Results, notes: Notes) -> str:
    """The title, the outcome, a summary of the runs, and what is missing."""
    return (
        f'<p class="kind">steadyrl report</p>\n<h1>{html.escape(name)}</h1>\n'
        f"{_outcome(results)}<p>{html.escape(_summary(results))}</p>\n{_made(results)}\n{_notes(notes)}"
    )


def _outcome(results: Results) -> str:
    """A sentence for each variant: which method has the highest mean and the best tail, or the highest return."""
    lines = [
        f"<li><b>{html.escape(variant)}</b>: {html.escape(text)}</li>"
        for variant, members in results.by_variant()
        if (text := _best(members))
    ]
    return f'<ul class="outcome">{"".join(lines)}</ul>\n' if lines else ""


def _best(members: Sequence[GroupResults]) -> str:
    evaluated = [result for result in members if result.marks]
    if not evaluated:
        finals = [(final[0], result) for result in members if (final := final_of(result.group, "return")) is not None]
        if not finals:
            return ""
        value, best = max(finals, key=lambda pair: pair[0])
        return f"{best.group.method} has the highest return in the last tenth of training, {formatting.number(value)}."
    best = max(evaluated, key=lambda result: result.marks["mean"].value)
    safest = max(evaluated, key=lambda result: result.marks["cvar_10"].value)
    if len(evaluated) == 1:
        mean, tail = _value(best, "mean"), _value(best, "cvar_10")
        return f"{best.group.method} has a mean return of {mean} and a mean of the worst tenth of {tail}."
    if best is safest:
        return (
            f"{best.group.method} has the highest mean return, {_value(best, 'mean')}, and the highest {_tail(best)}."
        )
    return (
        f"{best.group.method} has the highest mean return, {_value(best, 'mean')} ({_tail(best)}). "
        f"{safest.group.method} has the highest {_tail(safest)} (mean return {_value(safest, 'mean')})."
    )


def _value(result: GroupResults, name: str) -> str:
    mark = result.marks[name]
    return f"{formatting.number(mark.value)} {formatting.interval(mark)}"


def _tail(result: GroupResults) -> str:
    return f"mean of the worst tenth, {_value(result, 'cvar_10')}"


def _summary(results: Results) -> str:
    """For example 8 runs: 2 methods in 2 variants of CartPole-v1, 2 seeds each, 300 episodes a run, 2,400 in all."""
    groups, runs = [result.group for result in results.groups], results.runs
    variants, methods = {group.variant for group in groups}, {group.method for group in groups}
    environments = sorted({str(group.settings["env", "env"]) for group in groups})
    seeds = [len(group.runs) for group in groups]
    design = f"{formatting.count(len(methods), 'method')} in {formatting.count(len(variants), 'variant')} of"
    budget = f"{formatting.span(seeds)} seed{'' if max(seeds) == 1 else 's'} each, "
    budget += f"{formatting.span([run.episodes for run in runs])} episodes a run"
    total = sum(run.episodes for run in runs)
    counts = {state: sum(run.state.name == state for run in runs) for state in (FAILED, RUNNING)}
    ended = "".join(f" {number} {state}." for state, number in counts.items() if number)
    what = f"{formatting.count(len(runs), 'run')}: {design} {' and '.join(environments)}"
    return f"{what}, {budget}, {total:,} in all.{ended}"


def _made(results: Results) -> str:
    """When, with which command and with which versions the runs were made, folded away."""
    runs = results.runs
    times = sorted(str(run.config["started"]) for run in runs if run.config.get("started"))
    commands = list(dict.fromkeys(run.command for run in runs if run.command))
    versions = [_versions(run.config.get("versions") or {}) for run in runs]
    details = {
        "started": html.escape(_time_span(times)),
        "command": _codes(commands),
        "versions": "<br>".join(html.escape(version) for version in dict.fromkeys(versions)),
    }
    terms = "".join(f"<dt>{term}</dt><dd>{detail}</dd>" for term, detail in details.items() if detail)
    return f"<details><summary>How it was made</summary><dl>{terms}</dl></details>" if terms else ""


def _notes(notes: Notes) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in note_lines(notes))
    return f'<div class="notes"><p>Missing or incomplete:</p><ul>{items}</ul></div>'


def note_lines(notes: Notes) -> list[str]:
    """A line for each reason, with the names of the runs."""
    return [f"{formatting.count(len(names), 'run')}, {reason}: {_first(names)}" for reason, names in notes.items()]


def _first(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def _codes(commands: Sequence[str]) -> str:
    codes = "".join(formatting.command(command) for command in commands[:MAX_LISTED])
    return codes + (f"and {len(commands) - MAX_LISTED} more" if len(commands) > MAX_LISTED else "")


def _time_span(times: Sequence[str]) -> str:
    """The first to the last of sorted times, for example 2026-11-16 00:27 to 00:31 UTC."""
    if not times:
        return ""
    (first_day, first), (last_day, last) = ((time[:10], time[11:16]) for time in (times[0], times[-1]))
    until = "" if (first_day, first) == (last_day, last) else f" to {last}"
    if first_day != last_day:
        until = f" to {last_day} {last}"
    return f"{first_day} {first}{until} UTC"


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
