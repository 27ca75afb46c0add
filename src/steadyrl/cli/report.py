"""`steadyrl report`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from steadyrl.cli.arguments import Count, Flag, Progress, named


@dataclass(frozen=True)
class Report:
    """Write a page about all runs below a folder: one HTML file that opens from disk, without a network.

    While a sweep runs: steadyrl report runs/sweep --watch
    """

    folder: tyro.conf.Positional[Path]
    """Where to look for run folders."""
    out: Annotated[Path | None, named("FILE")] = None
    """The file to write; report.html in that folder by default."""
    episodes: Count = 200
    """How many episodes to play with each agent for the distributions of returns."""
    env: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, named("MODULE:FACTORY")] = ()
    """Your own environment, to evaluate agents that were trained in it; repeatable. Files do not choose code to run."""
    watch: Flag = False
    """Write the page again whenever a run has changed, until Ctrl-C; the page loads itself again meanwhile."""
    every: Count = 10
    """With --watch: how many seconds between two looks at the runs."""
    films: Progress = True
    """Film the worst, median and best episode of each method; once, when its runs are complete."""
    open: Flag = False
    """Open the page in a browser, if there is a display."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.cli.page import show_page
        from steadyrl.reports.page import write_report

        def warn(line: str) -> None:
            print(line, file=sys.stderr)

        if self.watch:
            self._watch()
            return
        page = write_report(self.folder, self.out, episodes=self.episodes, envs=self.env, warn=warn, films=self.films)
        print(f"Page: {page}")
        if self.open:
            show_page(page)

    def _watch(self) -> None:
        from steadyrl.cli.page import show_page
        from steadyrl.reports.page.watch import watch

        first = True

        def written(page: Path) -> None:
            nonlocal first
            if first:
                print(f"Page: {page}. It is written again when runs change; Ctrl-C ends that.", flush=True)
                if self.open:
                    show_page(page)
            first = False

        def failed(reason: str) -> None:
            print(f"No page yet: {reason} Waiting for a change; Ctrl-C ends that.", file=sys.stderr, flush=True)

        watch(self.folder, self.out, self.episodes, self.env, self.every, written, films=self.films, failed=failed)
