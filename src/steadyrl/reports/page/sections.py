"""The sections of the report, as HTML: header, learning curves, return distributions, visits and runs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.distributions import AgentEpisodes, Array, marks_of
from steadyrl.reports.page.elements import figure_element, plot_placeholder
from steadyrl.reports.page.glossary import explained_measures, explained_methods
from steadyrl.reports.page.groups import Group, differing
from steadyrl.reports.page.learning import curve_of, measures_of, title, update_metrics_of
from steadyrl.reports.page.maze_map import maze_map, scale_key
from steadyrl.reports.page.panels import Figure, Palette, curve_panel, distribution_panel
from steadyrl.reports.page.runs_found import Notes

MAX_LISTED = 5
"""Maximum number of commands, or of run names in a note, that are listed."""


@dataclass(frozen=True)
class GroupResults:
    """A group of runs, and the evaluation episodes of its agents."""

    group: Group
    agents: list[AgentEpisodes]


def header(name: str, groups: Sequence[Group], notes: Notes) -> str:
    """The title, a summary of the runs, and when, with which command and with which versions they were made."""
    runs = [run for group in groups for run in group.runs]
    variants, methods = {group.variant for group in groups}, {group.method for group in groups}
    environments = sorted({str(group.settings["env", "env"]) for group in groups})
    seeds = [len(group.runs) for group in groups]
    design = f"{formatting.count(len(methods), 'method')} in {formatting.count(len(variants), 'variant')} of"
    budget = f"{formatting.span(seeds)} seed{'' if max(seeds) == 1 else 's'} each, "
    budget += f"{formatting.span([run.episodes for run in runs])} episodes a run"
    total = sum(run.episodes for run in runs)
    times = sorted(str(run.config["started"]) for run in runs if run.config.get("started"))
    commands = list(dict.fromkeys(_command(str(run.config.get("command", ""))) for run in runs))
    versions = [_versions(run.config.get("versions") or {}) for run in runs]
    details = {
        "started": html.escape(_time_span(times)),
        "command": _codes([command for command in commands if command]),
        "versions": "<br>".join(html.escape(version) for version in dict.fromkeys(versions)),
    }
    detail_list = "".join(f"<dt>{term}</dt><dd>{detail}</dd>" for term, detail in details.items() if detail)
    return (
        f'<p class="kind">steadyrl report</p>\n<h1>{html.escape(name)}</h1>\n'
        f"<p>{formatting.count(len(runs), 'run')}: {design} {html.escape(' and '.join(environments))}, {budget}, "
        f"{total:,} in all.</p>\n<dl>{detail_list}</dl>\n{_notes(notes)}"
    )


def sections(results: Sequence[GroupResults], episodes: int) -> tuple[str, list[Figure]]:
    """Everything below the header, and the figures for its placeholders."""
    groups = [result.group for result in results]
    palette = Palette(list(dict.fromkeys(group.method for group in groups)))
    metrics = dict.fromkeys(name for result in results for agent in result.agents for name in agent.episode_metrics)
    measures = measures_of(groups, metrics)
    figures: list[Figure] = []
    parts = [
        _curves(groups, measures, palette, figures),
        _distributions(results, episodes, palette, figures),
        _maps(results, palette),
        _runs(groups, measures, palette),
    ]
    return "\n".join(part for part in parts if part), figures


def _curves(groups: Sequence[Group], measures: Sequence[str], palette: Palette, figures: list[Figure]) -> str:
    blocks = _curve_blocks(groups, measures, palette, figures)
    details = _update_diagnostics(groups, palette, figures)
    if not blocks and not details:
        return ""
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-method="{html.escape(method)}"><span class="line" '
        f'style="border-color:{palette.colour(method)};border-top-style:{palette.border(method)}"></span>'
        f"{html.escape(method)}</button>"
        for method in dict.fromkeys(group.method for group in groups)
    )
    text = (
        "Mean over seeds of the training episodes, exploration included; the band is one standard error. "
        "Click a name to hide its curves. "
        "With a mouse, drag to zoom and double-click to reset."
    )
    return (
        f'<section class="curves"><h2>Learning curves</h2>\n<p class="soft">{text}</p>\n'
        f"{explained_measures(groups, measures)}{explained_methods(groups)}"
        f'<div class="legend">{buttons}</div>\n{blocks}{details}</section>'
    )


def _update_diagnostics(groups: Sequence[Group], palette: Palette, figures: list[Figure]) -> str:
    """Curves of losses and other metrics of the updates, folded."""
    blocks = _curve_blocks(groups, update_metrics_of(groups), palette, figures)
    if not blocks:
        return ""
    text = "Metrics of the updates, averaged over those of a record. Methods that have no such metric are left out."
    return f'<details><summary>Update diagnostics</summary>\n<p class="soft">{text}</p>\n{blocks}</details>'


def _curve_blocks(groups: Sequence[Group], measures: Sequence[str], palette: Palette, figures: list[Figure]) -> str:
    """A grid of panels for each variant, one panel per measure."""
    blocks = []
    for variant in _variants(groups):
        panels = []
        for measure in measures:
            curves = {g.method: c for g in groups if g.variant == variant and (c := curve_of(g, measure)) is not None}
            if curves:
                figure = curve_panel(curves, measure, palette)
                plot = plot_placeholder(figure, f"{title(measure)}, {variant}", figures)
                outside = not formatting.is_rate(measure) and "range" in figure["layout"]["yaxis"]
                panels.append(figure_element(html.escape(title(measure)), plot + outside * _OUTSIDE))
        if panels:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="grid">{"".join(panels)}</div>')
    return "\n".join(blocks)


def _distributions(results: Sequence[GroupResults], episodes: int, palette: Palette, figures: list[Figure]) -> str:
    blocks = []
    for variant in _variants([result.group for result in results]):
        by_method = {r.group.method: r.agents for r in results if r.group.variant == variant and r.agents}
        if not by_method:
            continue
        marks = {method: marks_of([agent.returns for agent in agents]) for method, agents in by_method.items()}
        returns = {method: np.concatenate([agent.returns for agent in agents]) for method, agents in by_method.items()}
        metrics = {
            method: {
                name: float(np.mean([agent.episode_metrics[name] for agent in agents]))
                for name in agents[0].episode_metrics
                if all(name in agent.episode_metrics for agent in agents)
            }
            for method, agents in by_method.items()
        }
        figure = distribution_panel(returns, marks, palette)
        plot = plot_placeholder(figure, f"Distribution of returns, {variant}", figures)
        blocks.append(figure_element(html.escape(variant), plot + tables.marks_table(marks, metrics, palette)))
    if not blocks:
        return ""
    text = (
        f"{episodes:,} evaluation episodes of each trained agent, pooled over the seeds of a method. Heights are on a "
        "square-root scale, so that rare episodes are visible. Intervals have 95 % confidence; the bootstrap resamples "
        "seeds, and episodes within each seed. Returns are undiscounted, and so is the Gini deviation (GD)."
    )
    return (
        f'<section><h2>Return distributions</h2>\n<p class="soft">{text}</p>\n<ul class="key">{_MARKS_KEY}</ul>\n'
        f'<div class="wide">{"".join(blocks)}</div></section>'
    )


def _maps(results: Sequence[GroupResults], palette: Palette) -> str:
    visits = {
        (result.group.variant, result.group.method): (result.agents[0].maze, np.mean(counts, axis=0))
        for result in results
        if (counts := _visits(result.agents))
    }
    if not visits:
        return ""
    max_visits = max(1.0, *(float(mean.max()) for _, mean in visits.values()))
    blocks = []
    for variant in dict.fromkeys(variant for variant, _ in visits):
        maps = [
            figure_element(tables.method_name(method, palette), maze_map(maze, mean, max_visits))
            for (map_variant, method), (maze, mean) in visits.items()
            if map_variant == variant and maze is not None
        ]
        blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="maps">{"".join(maps)}</div>')
    text = (
        "Mean visits per episode to each cell, over the same episodes and all seeds: S start, G goal, R red; "
        "cells visited less than once in 100 episodes are white. All maps share a logarithmic colour scale:"
    )
    return f'<section><h2>Visits</h2>\n<p class="soft">{text}</p>\n{scale_key(max_visits)}\n{"".join(blocks)}</section>'


def _visits(agents: Sequence[AgentEpisodes]) -> list[Array]:
    """Those of agents in a maze of the same size as the first one's: a checkpoint may be that of another run."""
    first = agents[0].visits if agents else None
    visits = [agent.visits for agent in agents if agent.visits is not None]
    return [] if first is None else [counts for counts in visits if counts.shape == first.shape]


def _runs(groups: Sequence[Group], measures: Sequence[str], palette: Palette) -> str:
    settings = [group.settings for group in groups]
    varying = set(differing(settings))
    common = [f"{key[1]} {formatting.setting(value)}" for key, value in settings[0].items() if key not in varying]
    shared = f'<p class="soft">Shared settings: {html.escape(", ".join(common))}.</p>' if len(groups) > 1 else ""
    text = (
        "Means over seeds in the last tenth of training, ± one standard error. Gini deviation (GD) is that of "
        "undiscounted returns, discounted GD that of discounted ones."
    )
    return (
        f'<section><h2>Runs</h2>\n<p class="soft">{text}</p>\n'
        f'<div class="runs">{tables.runs_table(groups, measures, palette)}</div>\n{shared}</section>'
    )


def _variants(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(group.variant for group in groups))


_OUTSIDE = (
    '<p class="outside">Some values lie outside this range. '
    '<button type="button" aria-pressed="false">Show all</button></p>'
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
    codes = "".join(f"<code>{html.escape(command)}</code>" for command in commands[:MAX_LISTED])
    return codes + (f"and {len(commands) - MAX_LISTED} more" if len(commands) > MAX_LISTED else "")


def _command(text: str) -> str:
    """The command without the path of the program."""
    program, _, rest = text.partition(" ")
    return f"{PurePath(program).name} {rest}".strip()


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
