"""From a folder of runs to the page."""

from __future__ import annotations

import html
import importlib
import json
from importlib.resources import files
from pathlib import Path
from string import Template

from rich.console import Console
from rich.progress import track

from steadyrl.checkpoint import write_whole
from steadyrl.report import sections
from steadyrl.report.groups import group_runs
from steadyrl.report.panels import Figure
from steadyrl.report.playing import Play, play
from steadyrl.report.runs_found import find_runs
from steadyrl.report.sections import Learned


def write_report(folder: str | Path, to: str | Path | None = None, *, episodes: int = 200) -> Path:
    """Write one HTML file about every run below `folder`, which opens from disk and needs no network.

    Example: `write_report(Path("results/maze"))` writes results/maze/report.html.

    Args:
        folder: Where to look for runs, at any depth.
        to: The file to write; report.html in `folder` by default.
        episodes: How many to play with each trained agent for the distributions of returns; at least 2.

    Returns:
        The file.
    """
    if episodes < 2:
        raise ValueError(f"episodes={episodes}: a distribution of returns needs at least 2. Raise episodes.")
    plotly = _plotly_js()
    root = Path(folder)
    runs, notes = find_runs(root)
    groups = group_runs(runs, root, notes)
    plays: dict[str, Play] = {}
    console = Console(stderr=True)
    everyone = [run for group in groups for run in group.runs]
    for run in track(everyone, "playing", console=console, transient=True, disable=not console.is_interactive):
        played = play(run, episodes, notes)
        if played is not None:
            plays[run.name] = played
    learned = [Learned(group, [plays[run.name] for run in group.runs if run.name in plays]) for group in groups]
    content, figures = sections.sections(learned, episodes)
    name = root.resolve().name
    page = Template((files("steadyrl.report") / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(f"{name}: steadyrl report"),
        header=sections.header(name, groups, notes),
        sections=content,
        plotly=plotly,
        figures=_as_script(figures),
    )
    path = root / "report.html" if to is None else Path(to)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page.encode())
    return path


def _plotly_js() -> str:
    try:
        offline = importlib.import_module("plotly.offline")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the page needs plotly, which is not installed: pip install 'steadyrl[report]'"
        ) from None
    return str(offline.get_plotlyjs())


def _as_script(figures: list[Figure]) -> str:
    """JSON that cannot end the script element which holds it."""
    return json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
