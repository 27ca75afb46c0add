"""How commands end that train: with a page about the runs, its address, and a browser if there is a display."""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from steadyrl.cli.arguments import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steadyrl.runs.job import Job
    from steadyrl.runs.scheduler import Failure

Page = Progress
"""A switch that is on by default: whether to write a page."""
PAGE = "report.html"
"""The name of the file."""
EPISODES = 100
"""Evaluation episodes of each agent, where the user has not asked for a number of them."""
SIDE_BY_SIDE = 8
"""More agents than this are evaluated in several processes."""


def write_page(
    folder: Path,
    typed: Path,
    envs: Iterable[str] = (),
    episodes: int = EPISODES,
    failures: Sequence[Failure] = (),
) -> Path | None:
    """Write the page about all runs in the folder, and say where it is.

    The page does not decide how a command ends: if it cannot be written, a line says why. `envs` are the environments
    that the user named; only those of the form module:factory need a name.
    """
    from steadyrl.reports.page import write_report
    from steadyrl.reports.page.runs_found import find_runs

    try:
        recorded = {run.env_id for run in find_runs(folder)[0]}
        named = tuple(env for env in dict.fromkeys(envs) if ":" in env and env in recorded)
        lost = [failure for failure in failures if not any(path.exists() for path in failure.job.folders)]
        failed = {failure.job.title: failure.reason for failure in lost}
        page = write_report(folder, envs=named, episodes=episodes, failed=failed)
    except (ValueError, OSError) as error:
        print(f"Page: not written. {error} To try again: steadyrl report {shlex.quote(str(typed))}")
        return None
    print(f"Page: {typed / PAGE}")
    return page


def evaluate_many(cells: Sequence[Job], out: Path, progress: bool, episodes: int = EPISODES) -> None:
    """Evaluate the final policies in several processes, if there are many; a failure is for the page to report."""
    from steadyrl.runs.final_evaluation import evaluate_all

    if sum(len(cell.runs) for cell in cells) > SIDE_BY_SIDE:
        evaluate_all(cells, out, episodes, progress=progress)


def has_display() -> bool:
    """Whether a browser has a screen to open on."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show_page(page: Path) -> None:
    """Print the address of a page, and open it if there is a display."""
    address = page.resolve().as_uri()
    print(f"Its address: {address}", flush=True)
    if has_display():
        webbrowser.open(address)
