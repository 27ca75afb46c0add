"""What the page shows of a single method or run when its name or point is followed, as JSON."""

from __future__ import annotations

import shlex
from typing import Any

from steadyrl.reports.page import formatting
from steadyrl.reports.page.episode_section import watch_command
from steadyrl.reports.page.groups import varied
from steadyrl.reports.page.results import Results
from steadyrl.reports.page.runs_found import FoundRun

MAX_TEXT = 300
"""Characters of a setting that are shown: a maze may be long."""


def details_of(results: Results) -> dict[str, Any]:
    """Methods, groups and runs by their numbers."""
    keys = set(varied([result.group.settings for result in results.groups]))
    palette = results.palette
    return {
        "methods": [{"name": method, "dash": palette.dash(method)} for method in palette.methods],
        "groups": [
            {
                "variant": result.group.variant,
                "m": palette.index(result.group.method),
                "runs": [results.run_index(run.name) for run in result.group.runs],
                "settings": [
                    [name, _text(value), (section, name) in keys]
                    for (section, name), value in result.group.settings.items()
                    if value is not None
                ],
                "marks": {
                    name: f"{formatting.number(mark.value)} {formatting.interval(mark)}"
                    for name, mark in result.marks.items()
                },
            }
            for result in results.groups
        ],
        "runs": [
            {
                "g": result.index,
                "name": run.name,
                "seed": run.seed,
                "state": run.state.name or "no checkpoint",
                "reason": run.state.reason,
                "started": str(run.config.get("started", "")),
                "commands": _commands(run),
            }
            for result in results.groups
            for run in result.group.runs
        ],
    }


def _text(value: Any) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else formatting.setting(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def _commands(run: FoundRun) -> list[list[str]]:
    """[what it does, command]."""
    evaluate = f"steadyrl evaluate {shlex.quote(str(run.folder))} --seed {run.seed}{run.env_option}"
    commands = [["made by", run.command], ["its risk", evaluate], ["its film", watch_command(run)]]
    return [pair for pair in commands if pair[1]]
