"""The worst, median and best evaluation episode of each method side by side, and films."""

from __future__ import annotations

import html
import shlex
from typing import NamedTuple

import numpy as np

from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.films import EPISODES, FilmReel, run_with_film
from steadyrl.reports.page.plots import figure_element
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.reports.page.runs_found import FoundRun


class Episode(NamedTuple):
    """An evaluation episode."""

    run: FoundRun
    number: int
    """Among those of its run, from 0 on."""
    value: float
    """Its return."""


def extremes_of(result: GroupResults) -> dict[str, Episode]:
    """The worst, median and best of all evaluation episodes of a group; the median is the lower one of two."""
    runs = {run.name: run for run in result.group.runs}
    episodes = [
        Episode(runs[name], number, float(value))
        for name, agent in result.agents.items()
        for number, value in enumerate(agent.returns)
    ]
    order = np.argsort([episode.value for episode in episodes], kind="stable")
    places = (0, (len(order) - 1) // 2, len(order) - 1)
    return {name: episodes[order[place]] for name, place in zip(EPISODES, places, strict=True)}


def episode_section(results: Results, reel: FilmReel) -> str:
    """The section, as HTML; empty if there are neither evaluation episodes nor films."""
    blocks = []
    for variant, members in results.by_variant():
        figures = [figure for result in members if (figure := _figure(result, results, reel))]
        if figures:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="grid">{"".join(figures)}</div>')
    if not blocks:
        return ""
    text = (
        "The worst, the median and the best of the evaluation episodes of each method, over all its seeds. "
        "The command plays the episodes of a run again and films the worst of them. A film.gif, film.webp or "
        "film.mp4 in a run folder, which steadyrl watch RUN writes, is shown here."
    )
    return (
        '<section id="episodes"><details open><summary class="title"><h2>Worst, median and best episodes</h2></summary>'
        f'\n<p class="soft">{text}</p>\n{"".join(blocks)}</details></section>'
    )


def _figure(result: GroupResults, results: Results, reel: FilmReel) -> str:
    content = ""
    if (filmed := run_with_film(result.group.runs)) is not None:
        content += reel.element(filmed, f"{result.group.method}, seed {filmed.seed}")
    if result.agents:
        content += _cards(result, reel)
    return figure_element(tables.method_link(result, results.palette), content) if content else ""


def _cards(result: GroupResults, reel: FilmReel) -> str:
    extremes = extremes_of(result)
    cards = [
        f"<li><b>{name}</b> <span>{formatting.number(episode.value)}</span>"
        f"<small>seed {episode.run.seed}, episode {episode.number}</small>"
        f"{reel.element(episode.run, f'{name} episode', name)}</li>"
        for name, episode in extremes.items()
    ]
    run = extremes["worst"].run
    command = watch_command(run, worst_of=len(result.agents[run.name].returns))
    return f'<ul class="cards">{"".join(cards)}</ul><code>{html.escape(command)}</code>'


def watch_command(run: FoundRun, worst_of: int = 0) -> str:
    """The command that films the worst, median and best episode of a run, or the worst of so many on the page."""
    which = f" --worst 1 --seed {run.seed} --episodes {worst_of}" if worst_of else ""
    return f"steadyrl watch {shlex.quote(str(run.folder))}{which}{run.env_option}"
