"""`steadyrl report`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from steadyrl.cli.arguments import Count, named


@dataclass(frozen=True)
class Report:
    """Write a page about all runs below a folder: one HTML file that opens from disk, without a network."""

    folder: tyro.conf.Positional[Path]
    """Where to look for run folders."""
    out: Annotated[Path | None, named("FILE")] = None
    """The file to write; report.html in that folder by default."""
    episodes: Count = 200
    """How many episodes to play with each agent for the distributions of returns."""
    env: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, named("MODULE:FACTORY")] = ()
    """Your own environment, to evaluate agents that were trained in it; repeatable. Files do not choose code to run."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.reports.page import write_report

        def warn(line: str) -> None:
            print(line, file=sys.stderr)

        page = write_report(self.folder, self.out, episodes=self.episodes, envs=self.env, warn=warn)
        print(f"Page: {page}")
