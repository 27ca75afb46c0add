"""`steadyrl report`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from steadyrl.cli.arguments import Count


@dataclass(frozen=True)
class Report:
    """Write a page about all runs below a folder: one HTML file that opens from disk, without a network."""

    folder: tyro.conf.Positional[Path]
    """Where to look for run folders."""
    out: Path | None = None
    """The file to write; by default report.html in that folder."""
    episodes: Count = 200
    """How many episodes to play with each agent for the distributions of returns."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.reports.page import write_report

        def warn(line: str) -> None:
            print(line, file=sys.stderr)

        print(f"Page: {write_report(self.folder, self.out, episodes=self.episodes, warn=warn)}")
