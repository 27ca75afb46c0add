"""Writes the HTML report of a folder of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from steadyrl.base.files import write_atomic
from steadyrl.base.shown import printable
from steadyrl.reports.page.controls import controls
from steadyrl.reports.page.curve_section import curve_section
from steadyrl.reports.page.details import details_of
from steadyrl.reports.page.document import document
from steadyrl.reports.page.episode_section import episode_section
from steadyrl.reports.page.evaluation import AgentEpisodes, evaluate_agent
from steadyrl.reports.page.films import FilmReel
from steadyrl.reports.page.frontier import frontier_sections
from steadyrl.reports.page.group_films import GroupFilm, make_films
from steadyrl.reports.page.groups import group_runs
from steadyrl.reports.page.header import header, note_lines
from steadyrl.reports.page.map_section import map_section
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.results import Results
from steadyrl.reports.page.return_section import return_section
from steadyrl.reports.page.runs_found import FoundRun, Notes, all_damaged, find_runs
from steadyrl.reports.page.runs_section import runs_section

PAGE = "report.html"


def write_report(
    folder: str | Path,
    to: str | Path | None = None,
    *,
    episodes: int = 200,
    envs: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
    refresh: int = 0,
    failed: Mapping[str, str] = MappingProxyType({}),
    films: bool = True,
) -> Path:
    """Write an HTML report of all runs in a folder: a single file that opens offline.

    Runs that are damaged or incomplete are left out, as far as necessary; the page says which and why. Evaluation
    episodes are played once: they are stored in the folders of complete runs.

    Example: `write_report("results/maze")` writes results/maze/report.html.

    Args:
        folder: The folder to search for runs, including all subfolders.
        to: The file to write; report.html in `folder` by default.
        episodes: Number of evaluation episodes per trained agent for the return distributions, at least 2.
        envs: Environments given as `module:factory` that may be created to evaluate the agents that were trained in
            them. A file never chooses code to run, so agents of others are left out of the return distributions,
            unless their evaluation episodes are stored.
        warn: Called with a line of text for each reason that something is missing from the page.
        refresh: After how many seconds the page loads itself again; 0 for never.
        failed: Runs that have no folder, because they failed before anything was recorded -> the reason.
        films: Whether to film the worst, median and best episode of each method whose runs are complete. A film is made
            once: it is stored in the folder of the method's first run.

    Returns:
        The path of the file.

    Raises:
        ValueError: If no run can be shown, or no run was trained in one of `envs`.
    """
    check_episodes(episodes)
    root = Path(folder)
    path = root / PAGE if to is None else Path(to)
    runs, notes = find_runs(root)
    for name, reason in failed.items():
        notes[f"failed before anything was recorded: {' '.join(reason.split())}"].append(name)
    named = NamedEnvs(root, tuple(envs), tuple(run.env_id for run in runs))
    groups = group_runs(runs, root, notes)
    evaluated = _evaluate([run for group in groups for run in group.runs], episodes, notes, named)
    if not evaluated and all(run.is_damaged for run in runs):
        raise ValueError(all_damaged(root, notes))
    results = Results(groups, evaluated)
    page = _page(root, path, results, make_films(results, named) if films else {}, notes, refresh)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names and settings of unknown origin may hold what is not Unicode text.
    write_atomic(path, page.encode(errors="replace"))
    for line in note_lines(notes):
        if warn is not None:
            warn(printable(line))
    return path


def check_episodes(episodes: int) -> None:
    """An error if there are too few evaluation episodes."""
    if episodes < 2:
        raise ValueError(f"episodes={episodes}: a distribution of returns needs at least 2. Raise episodes.")


def _evaluate(runs: Sequence[FoundRun], episodes: int, notes: Notes, envs: NamedEnvs) -> dict[str, AgentEpisodes]:
    """Run -> its evaluation episodes, with a line about progress in a terminal."""
    evaluated: dict[str, AgentEpisodes] = {}
    console = Console(stderr=True)
    for number, run in enumerate(runs, start=1):
        if console.is_interactive:
            console.print(f"evaluating {number} of {len(runs)} agents", end="\r", highlight=False)
        agent_episodes = evaluate_agent(run, episodes, notes, envs)
        if agent_episodes is not None:
            evaluated[run.name] = agent_episodes
    if console.is_interactive:
        console.print(" " * 40, end="\r")
    return evaluated


def _page(root: Path, path: Path, results: Results, films: Mapping[int, GroupFilm], notes: Notes, refresh: int) -> str:
    name = root.resolve().name
    distributions: list[dict[str, Any]] = []
    reel = FilmReel(path)
    # Plots are numbered in the order of their sections.
    sections = [
        *frontier_sections(root, results),
        return_section(results, distributions),
        curve_section(results),
        episode_section(results, reel, films),
        map_section(results),
        runs_section(results),
    ]
    if reel.linked:
        notes["too large to be part of the page, which links to it: film"] += reel.linked
    content = [header(name, results, notes), controls(results), *(section for section in sections if section)]
    data = {**results.data.to_dict(), **details_of(results), "distributions": distributions, "refresh": refresh}
    return document(f"{name}: steadyrl report", "\n".join(content), results.palette.styles(), data)
