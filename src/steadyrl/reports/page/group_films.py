"""Films that the page makes itself: the worst, median and best evaluation episode of a method, side by side."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from PIL import Image
from rich.console import Console

from steadyrl.agents import load
from steadyrl.agents.agent import Agent
from steadyrl.base.files import write_atomic
from steadyrl.evaluation.film.rendering_env import rendering_env
from steadyrl.evaluation.film.scenes import Film, Take, record_scenes
from steadyrl.evaluation.film.selection import Selected
from steadyrl.evaluation.play import replay_numbered
from steadyrl.reports.page.films import MAX_ALL, find_film, run_with_film
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.results import Episode, GroupResults, Results
from steadyrl.reports.page.runs_found import FoundRun
from steadyrl.reports.palette import shown_first
from steadyrl.reports.run_state import COMPLETE

STEM = "report_film"
"""The film is kept in the folder of a method's first run, as report_film.gif."""
MOST = 24
"""Films of a page; with more methods, the others have a command alone."""
MAX_BYTES, MIN_BYTES = 250_000, 15_000
"""Of a film; with less room for each than the second, there are none."""
WIDTH, FPS, SECONDS = 200, 8.0, 6.0


class GroupFilm(NamedTuple):
    """The film of a group, or why there is none."""

    content: bytes = b""
    """A GIF; empty if there is none."""
    reason: str = ""


def make_films(results: Results, envs: NamedEnvs) -> dict[int, GroupFilm]:
    """Group -> its film, for the groups that have evaluation episodes and no film by `steadyrl watch`."""
    own = [film for result in results.groups if (film := _made_by_watch(result)) is not None]
    groups = _chosen([result for result in results.groups if result.agents and _made_by_watch(result) is None])
    room = MAX_ALL - sum(own)
    max_bytes = min(MAX_BYTES, room // max(1, len(groups)))
    if max_bytes < MIN_BYTES:
        return {}
    films: dict[int, GroupFilm] = {}
    cannot: dict[str, str] = {}
    console = Console(stderr=True)
    for number, result in enumerate(groups, start=1):
        if console.is_interactive:
            console.print(f"films: {number} of {len(groups)}", end="\r", highlight=False)
        films[result.index] = _film_of(result, results, envs, max_bytes, cannot)
    if console.is_interactive:
        console.print(" " * 40, end="\r")
    return films


def _made_by_watch(result: GroupResults) -> int | None:
    """The size of the film that is there already; None if there is none."""
    run = run_with_film(result.group.runs)
    film = None if run is None else find_film(run.folder, "film")
    return None if film is None else film.size


def _chosen(groups: Sequence[GroupResults]) -> list[GroupResults]:
    """At most so many as a page has films: of each agent the first method, then of each the second, and so on."""
    agents = {str(result.index): result.group.agent for result in groups}
    chosen = shown_first(agents, MOST)
    return [result for result in groups if str(result.index) in chosen]


def _film_of(
    result: GroupResults, results: Results, envs: NamedEnvs, max_bytes: int, cannot: dict[str, str]
) -> GroupFilm:
    """From the run folder if it is there, or else made; `cannot` remembers environments that cannot be filmed."""
    extremes = result.extremes
    if any(episode.run.state.name != COMPLETE for episode in extremes.values()):
        return GroupFilm(reason="it is made when the runs are complete.")
    colour = results.palette.colour(result.group.method)
    key = _key(extremes, colour, len(result.returns))
    folder = result.group.runs[0].folder
    stored = _stored(folder, key, max_bytes)
    if stored is not None:
        return GroupFilm(stored)
    env_id = extremes["worst"].run.env_id
    if env_id in cannot:
        return GroupFilm(reason=cannot[env_id])
    try:
        content = _make(result, colour, envs).gif(max_bytes, key)
    except Exception as error:  # Of an environment that anybody may have written.
        cannot[env_id] = " ".join(str(error).split()) or type(error).__name__
        return GroupFilm(reason=cannot[env_id])
    with suppress(OSError):  # A folder that cannot be written to: it is made again the next time.
        write_atomic(folder / f"{STEM}.gif", content)
    return GroupFilm(content)


def _key(extremes: dict[str, Episode], colour: str, episodes: int) -> str:
    """What a film depends on, as the comment in its file."""
    shown = [(e.run.seed, e.number, e.value) for e in extremes.values()]
    text = json.dumps([shown, colour, episodes, WIDTH, FPS, SECONDS])
    return f"steadyrl report {hashlib.sha256(text.encode()).hexdigest()}"


def _stored(folder: Path, key: str, max_bytes: int) -> bytes | None:
    film = find_film(folder, STEM)
    if film is None or film.mime != "image/gif" or film.size > max_bytes:
        return None
    content = film.path.read_bytes()
    with suppress(OSError, ValueError, SyntaxError), Image.open(io.BytesIO(content)) as image:
        if image.info.get("comment") == key.encode():
            return content
    return None


def _make(result: GroupResults, colour: str, envs: NamedEnvs) -> Film:
    extremes, episodes = result.extremes, len(result.returns)
    evaluated = {name: len(agent.returns) for name, agent in result.agents.items()}
    ranks = dict(zip(extremes, (1, (episodes + 1) // 2, episodes), strict=True))
    runs = {episode.run.name: episode.run for episode in extremes.values()}
    with ExitStack() as stack:
        agents = {name: _load(run, envs, stack) for name, run in runs.items()}
        env = rendering_env(next(iter(agents.values())).env)
        stack.callback(env.close)
        takes: dict[str, Take] = {}
        for name, run in runs.items():
            chosen = {kind: episode for kind, episode in extremes.items() if episode.run.name == name}
            numbers = [episode.number for episode in chosen.values()]
            played = replay_numbered(agents[name], env, numbers, evaluated[name], run.seed)
            for (kind, episode), script, value in zip(chosen.items(), played.scripts, played.returns, strict=True):
                _check_same(episode, float(value))
                selected = Selected(episode.number, ranks[kind], kind)
                takes[kind] = Take(f"seed {run.seed}", selected, episodes, script, float(value), colour)
        return record_scenes(env, [[takes[kind] for kind in extremes]], FPS, SECONDS, WIDTH)


def _load(run: FoundRun, envs: NamedEnvs, stack: ExitStack) -> Agent:
    """The agent, in the environment that the user named, or else in the one that its file records."""
    named: gym.Env[Any, Any] | None = envs.create(run)
    if named is not None:
        stack.callback(named.close)
    agent = load(run.checkpoint, named)
    if agent.env is None:
        raise ValueError(envs.reason(run))
    return agent


def _check_same(episode: Episode, value: float) -> None:
    if not math.isclose(episode.value, value, rel_tol=1e-6, abs_tol=1e-6):
        raise ValueError(
            f"episode {episode.number} of seed {episode.run.seed} had return {episode.value:.6g} in its evaluation, "
            f"and has {value:.6g} in the simulator that draws pictures."
        )
