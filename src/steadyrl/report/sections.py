"""The parts of the page, as HTML: what was run, how it learned, what it does now, and with which settings."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from steadyrl.report import numerals, tables
from steadyrl.report.groups import Group, differing
from steadyrl.report.learning import curve_of, measures_of, title
from steadyrl.report.maze_map import maze_map, scale_key
from steadyrl.report.panels import Figure, Palette, curve_panel, distribution_panel
from steadyrl.report.playing import Play, marks_of
from steadyrl.report.runs_found import Notes

LISTED = 5
"""At most so many commands, or names in a note, are listed."""


@dataclass(frozen=True)
class Learned:
    """A group, and what its trained agents did in fresh episodes."""

    group: Group
    plays: list[Play]


def header(name: str, groups: Sequence[Group], notes: Notes) -> str:
    """What this is, and how, when and with what it was made."""
    runs = [run for group in groups for run in group.runs]
    variants, methods = {group.variant for group in groups}, {group.method for group in groups}
    worlds = sorted({str(group.settings["env", "env"]) for group in groups})
    seeds = [len(group.runs) for group in groups]
    made_of = f"{numerals.count(len(methods), 'method')} in {numerals.count(len(variants), 'variant')} of"
    done = f"{numerals.span(seeds)} seed{'' if max(seeds) == 1 else 's'} each, "
    done += f"{numerals.span([run.episodes for run in runs])} episodes a run"
    total = sum(run.episodes for run in runs)
    times = sorted(str(run.config["started"]) for run in runs if run.config.get("started"))
    commands = list(dict.fromkeys(_command(str(run.config.get("command", ""))) for run in runs))
    versions = [_versions(run.config.get("versions") or {}) for run in runs]
    facts = {
        "started": html.escape(_clock(times)),
        "command": _codes([command for command in commands if command]),
        "versions": "<br>".join(html.escape(version) for version in dict.fromkeys(versions)),
    }
    told = "".join(f"<dt>{term}</dt><dd>{fact}</dd>" for term, fact in facts.items() if fact)
    return (
        f'<p class="kind">steadyrl report</p>\n<h1>{html.escape(name)}</h1>\n'
        f"<p>{numerals.count(len(runs), 'run')}: {made_of} {html.escape(' and '.join(worlds))}, {done}, "
        f"{total:,} in all.</p>\n<dl>{told}</dl>\n{_notes(notes)}"
    )


def sections(learned: Sequence[Learned], episodes: int) -> tuple[str, list[Figure]]:
    """Everything under the header, and the plots that it has places for."""
    groups = [each.group for each in learned]
    palette = Palette(list(dict.fromkeys(group.method for group in groups)))
    facts = dict.fromkeys(name for each in learned for play in each.plays for name in play.facts)
    measures = measures_of(groups, facts)
    figures: list[Figure] = []
    parts = [
        _curves(groups, measures, palette, figures),
        _distributions(learned, episodes, palette, figures),
        _maps(learned, palette),
        _runs(groups, measures, palette),
    ]
    return "\n".join(part for part in parts if part), figures


def _curves(groups: Sequence[Group], measures: Sequence[str], palette: Palette, figures: list[Figure]) -> str:
    blocks = []
    for variant in _variants(groups):
        panels = []
        for measure in measures:
            curves = {g.method: c for g in groups if g.variant == variant and (c := curve_of(g, measure)) is not None}
            if curves:
                figure = curve_panel(curves, measure, palette)
                panels.append(
                    _figure(html.escape(title(measure)), _plot(figure, f"{title(measure)}, {variant}", figures))
                )
        if panels:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="grid">{"".join(panels)}</div>')
    if not blocks:
        return ""
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-method="{html.escape(method)}"><span class="line" '
        f'style="border-color:{palette.colour(method)};border-top-style:{palette.border(method)}"></span>'
        f"{html.escape(method)}</button>"
        for method in dict.fromkeys(group.method for group in groups)
    )
    text = (
        "Mean over seeds of the episodes learned from, exploration included; the band is one standard error. "
        "Press a name to hide its curves. "
        "With a mouse, drag to zoom and double-click to come back."
    )
    return (
        f'<section class="curves"><h2>Learning curves</h2>\n<p class="soft">{text}</p>\n'
        f'<div class="legend">{buttons}</div>\n{"".join(blocks)}</section>'
    )


def _distributions(learned: Sequence[Learned], episodes: int, palette: Palette, figures: list[Figure]) -> str:
    blocks = []
    for variant in _variants([each.group for each in learned]):
        here = {each.group.method: each.plays for each in learned if each.group.variant == variant and each.plays}
        if not here:
            continue
        marks = {method: marks_of([play.returns for play in plays]) for method, plays in here.items()}
        returns = {method: np.concatenate([play.returns for play in plays]) for method, plays in here.items()}
        facts = {
            method: {name: float(np.mean([play.facts[name] for play in plays])) for name in plays[0].facts}
            for method, plays in here.items()
        }
        figure = distribution_panel(returns, marks, palette)
        plot = _plot(figure, f"Distribution of returns, {variant}", figures)
        blocks.append(_figure(html.escape(variant), plot + tables.marks_table(marks, facts, palette)))
    if not blocks:
        return ""
    text = (
        f"{episodes:,} fresh episodes of each trained agent, all seeds of a method together. Heights are on a "
        "square-root scale, so that rare episodes can be seen. Intervals are at 95 % confidence, from bootstrap "
        "samples of the seeds and of the episodes of each."
    )
    return (
        f'<section><h2>Return distributions</h2>\n<p class="soft">{text}</p>\n<ul class="key">{_MARKS_KEY}</ul>\n'
        f'<div class="wide">{"".join(blocks)}</div></section>'
    )


def _maps(learned: Sequence[Learned], palette: Palette) -> str:
    visits = {
        (each.group.variant, each.group.method): (each.plays[0].maze, np.mean(counted, axis=0))
        for each in learned
        if (counted := [play.visits for play in each.plays if play.visits is not None])
    }
    if not visits:
        return ""
    most = max(1.0, *(float(mean.max()) for _, mean in visits.values()))
    blocks = []
    for variant in dict.fromkeys(variant for variant, _ in visits):
        maps = [
            _figure(tables.method_name(method, palette), maze_map(maze, mean, most))
            for (place, method), (maze, mean) in visits.items()
            if place == variant and maze is not None
        ]
        blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="maps">{"".join(maps)}</div>')
    text = (
        "How often an episode is in each cell, averaged over the same episodes and all seeds: S start, G goal, R red; "
        "cells visited less than once in 100 episodes are white. The colours are on a logarithmic scale, the same in "
        "all maps:"
    )
    return f'<section><h2>Visits</h2>\n<p class="soft">{text}</p>\n{scale_key(most)}\n{"".join(blocks)}</section>'


def _runs(groups: Sequence[Group], measures: Sequence[str], palette: Palette) -> str:
    settings = [group.settings for group in groups]
    different = set(differing(settings))
    same = [f"{key[1]} {numerals.setting(value)}" for key, value in settings[0].items() if key not in different]
    shared = f'<p class="soft">The same in all: {html.escape(", ".join(same))}.</p>' if len(groups) > 1 else ""
    text = "Means over seeds in the last tenth of training, ± one standard error. GD is that of the discounted return."
    return (
        f'<section><h2>Runs</h2>\n<p class="soft">{text}</p>\n'
        f'<div class="runs">{tables.runs_table(groups, measures, palette)}</div>\n{shared}</section>'
    )


def _variants(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(group.variant for group in groups))


def _figure(caption: str, content: str) -> str:
    """Both are HTML."""
    return f"<figure><figcaption>{caption}</figcaption>{content}</figure>\n"


def _plot(figure: Figure, label: str, figures: list[Figure]) -> str:
    """The place of a plot, which is added to `figures`."""
    figures.append(figure)
    return (
        f'<div class="plot" data-figure="{len(figures) - 1}" role="img" aria-label="{html.escape(label)}" '
        f'style="height:{figure["layout"]["height"]}px"></div>'
    )


_ICONS = {
    "share of episodes": '<path d="M3 12V4h4v8zM8 12V1h4v11zM13 12V7h4v5z" fill="#9aa5b1"/>',
    "mean": '<path d="M11 1l5 5-5 5-5-5z" fill="#1f2933"/>',
    "mean ± GD": '<path d="M2 6h18M2 2v8M20 2v8" stroke="#1f2933" stroke-width="2"/>',
    "CVaR 10 %: mean of the worst tenth": '<path d="M11 1l5 9H6z" fill="#fff" stroke="#1f2933" stroke-width="1.5"/>',
}
_MARKS_KEY = "".join(f'<li><svg viewBox="0 0 22 12">{icon}</svg>{text}</li>' for text, icon in _ICONS.items())


def _notes(notes: Notes) -> str:
    if not notes:
        return ""
    items = "".join(
        f"<li>{numerals.count(len(names), 'run')}, {html.escape(reason)}: {html.escape(_first(names))}</li>"
        for reason, names in notes.items()
    )
    return f'<div class="notes"><p>Not everything is here:</p><ul>{items}</ul></div>'


def _first(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _codes(commands: Sequence[str]) -> str:
    codes = "".join(f"<code>{html.escape(command)}</code>" for command in commands[:LISTED])
    return codes + (f"and {len(commands) - LISTED} more" if len(commands) > LISTED else "")


def _command(text: str) -> str:
    """Without the folders of the program."""
    program, _, rest = text.partition(" ")
    return f"{PurePath(program).name} {rest}".strip()


def _clock(times: Sequence[str]) -> str:
    """The first and the last of sorted times: 2026-11-16 00:27 to 00:31 UTC."""
    if not times:
        return ""
    (first_day, first), (last_day, last) = ((time[:10], time[11:16]) for time in (times[0], times[-1]))
    until = "" if (first_day, first) == (last_day, last) else f" to {last}"
    if first_day != last_day:
        until = f" to {last_day} {last}"
    return f"{first_day} {first}{until} UTC"


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
