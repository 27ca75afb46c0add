"""Writes the HTML report of a folder of runs."""

from __future__ import annotations

import html
import importlib
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from rich.console import Console
from rich.progress import track

from steadyrl.base.files import write_atomic
from steadyrl.base.shown import printable
from steadyrl.reports.page import sections
from steadyrl.reports.page.distributions import AgentEpisodes, evaluate_agent
from steadyrl.reports.page.frontier import frontier_sections
from steadyrl.reports.page.groups import group_runs
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.panels import Figure
from steadyrl.reports.page.runs_found import all_damaged, find_runs
from steadyrl.reports.page.sections import GroupResults


def write_report(
    folder: str | Path,
    to: str | Path | None = None,
    *,
    episodes: int = 200,
    envs: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> Path:
    """Write an HTML report of all runs in a folder: a single file that opens offline.

    Runs that are damaged or incomplete are left out, as far as necessary; the page says which and why.

    Example: `write_report("results/maze")` writes results/maze/report.html.

    Args:
        folder: The folder to search for runs, including all subfolders.
        to: The file to write; report.html in `folder` by default.
        episodes: Number of evaluation episodes per trained agent for the return distributions, at least 2.
        envs: Environments given as `module:factory` that may be created to evaluate the agents that were trained in
            them. A file never chooses code to run, so agents of others are left out of the return distributions.
        warn: Called with a line of text for each reason that something is missing from the page.

    Returns:
        The path of the file.

    Raises:
        ValueError: If no run can be shown, or no run was trained in one of `envs`.
    """
    if episodes < 2:
        raise ValueError(f"episodes={episodes}: a distribution of returns needs at least 2. Raise episodes.")
    plotly = _plotly_js()
    root = Path(folder)
    runs, notes = find_runs(root)
    named = NamedEnvs(root, tuple(envs), tuple(run.env_id for run in runs))
    groups = group_runs(runs, root, notes)
    evaluated: dict[str, AgentEpisodes] = {}
    console = Console(stderr=True)
    grouped = [run for group in groups for run in group.runs]
    for run in track(grouped, "evaluating", console=console, transient=True, disable=not console.is_interactive):
        agent_episodes = evaluate_agent(run, episodes, notes, named)
        if agent_episodes is not None:
            evaluated[run.name] = agent_episodes
    if not evaluated and all(run.is_damaged for run in runs):
        raise ValueError(all_damaged(root, notes))
    results = [GroupResults(g, [evaluated[run.name] for run in g.runs if run.name in evaluated]) for g in groups]
    content, figures = sections.sections(results, episodes)
    content = "\n".join(part for part in (*frontier_sections(root, figures), content) if part)
    name = root.resolve().name
    page = Template((files("steadyrl.reports.page") / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(f"{name}: steadyrl report"),
        header=sections.header(name, groups, notes),
        sections=content,
        plotly=plotly,
        figures=_as_script(figures),
    )
    path = root / "report.html" if to is None else Path(to)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names and settings of unknown origin may hold what is not Unicode text.
    write_atomic(path, page.encode(errors="replace"))
    for line in sections.note_lines(notes):
        if warn is not None:
            warn(printable(line))
    return path


def _plotly_js() -> str:
    try:
        offline = importlib.import_module("plotly.offline")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the HTML report needs plotly, which is not installed: pip install 'steadyrl[report]'"
        ) from None
    return str(offline.get_plotlyjs())


def _as_script(figures: list[Figure]) -> str:
    """JSON with `<` escaped, so that it cannot close the script element that contains it."""
    return json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
