"""`steadyrl agents` and `steadyrl doctor`."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from typing import Annotated

import tyro

from steadyrl.cli.arguments import named


@dataclass(frozen=True)
class Agents:
    """List the agents, or all settings of one of them with their defaults."""

    name: Annotated[str | None, tyro.conf.Positional, named("NAME")] = None
    """The agent to describe; all of them by default."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.agents import AGENTS, agent_class
        from steadyrl.agents.describe import summary

        if self.name is not None:
            print(agent_class(self.name).__doc__)
            return
        for name, kind in AGENTS.items():
            print(textwrap.fill(f"{name:<10}  {summary(kind)}", 80, subsequent_indent=" " * 12))
        print("\nSettings of one of them: steadyrl agents NAME")


@dataclass(frozen=True)
class Doctor:
    """Report what is installed, what is missing and how to get it, and whether it works."""

    def __call__(self) -> None:
        """Run the command; status 1 if the core does not work."""
        from steadyrl.cli.doctor import describe, examine, is_well

        findings = examine()
        print(describe(findings))
        if not is_well(findings):
            sys.exit(1)
