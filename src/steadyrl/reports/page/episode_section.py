"""The worst, median and best evaluation episode of each method side by side, and films."""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping

from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.films import FilmReel, film_element, run_with_film
from steadyrl.reports.page.group_films import GroupFilm
from steadyrl.reports.page.plots import figure_element
from steadyrl.reports.page.results import GroupResults, Results
from steadyrl.reports.page.runs_found import FoundRun

_TEXT = "The worst, the median and the best of the evaluation episodes of each method, over all its seeds"
_FILMED = ", side by side in a film."
_NOT_FILMED = ". Without --no-films, steadyrl report films them side by side."
_WATCH = (
    " The command films the worst one alone. A film.gif, film.webp or film.mp4 in a run folder, which steadyrl watch "
    "RUN writes, is shown in place of the page's own film."
)


def episode_section(results: Results, reel: FilmReel, films: Mapping[int, GroupFilm]) -> str:
    """The section, as HTML; empty if there are neither evaluation episodes nor films."""
    blocks = []
    for variant, members in results.by_variant():
        figures = [figure for result in members if (figure := _figure(result, results, reel, films.get(result.index)))]
        if figures:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="wide">{"".join(figures)}</div>')
    if not blocks:
        return ""
    text = f"{_TEXT}{_FILMED if films else _NOT_FILMED}{_WATCH}"
    return (
        '<section id="episodes"><details open><summary class="title"><h2>Worst, median and best episodes</h2></summary>'
        f'\n<p class="soft">{text}</p>\n{"".join(blocks)}</details></section>'
    )


def _figure(result: GroupResults, results: Results, reel: FilmReel, film: GroupFilm | None) -> str:
    content = ""
    if (filmed := run_with_film(result.group.runs)) is not None:
        content += reel.element(filmed, f"{result.group.method}, seed {filmed.seed}")
    elif film is not None:
        content += _own_film(film, f"{result.group.method}, {result.group.variant}")
    if result.agents:
        content += _cards(result, reel)
    return figure_element(tables.method_link(result, results.palette), content) if content else ""


def _own_film(film: GroupFilm, title: str) -> str:
    if not film.content:
        return f'<p class="soft">No film: {html.escape(film.reason)}</p>'
    label = html.escape(f"Film: worst, median and best episode of {title}")
    scroll = f'<div class="film-scroll" tabindex="0" role="region" aria-label="{label}">'
    return f"{scroll}{film_element(film.content, 'image/gif', label)}</div>"


def _cards(result: GroupResults, reel: FilmReel) -> str:
    extremes = result.extremes
    cards = [
        f"<li><b>{name}</b> <span>{formatting.number(episode.value)}</span>"
        f"<small>seed {episode.run.seed}, episode {episode.number}</small>"
        f"{reel.element(episode.run, f'{name} episode', name)}</li>"
        for name, episode in extremes.items()
    ]
    run = extremes["worst"].run
    command = watch_command(run, worst_of=len(result.agents[run.name].returns))
    return f'<ul class="cards">{"".join(cards)}</ul>{formatting.command(command)}'


def watch_command(run: FoundRun, worst_of: int = 0) -> str:
    """The command that films the worst, median and best episode of a run, or the worst of so many on the page."""
    which = f" --worst 1 --seed {run.seed} --episodes {worst_of}" if worst_of else ""
    return f"steadyrl watch {shlex.quote(str(run.folder))}{which}{run.env_option}"
