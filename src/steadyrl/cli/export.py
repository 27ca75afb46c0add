"""`steadyrl export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from steadyrl.cli.arguments import Flag, named
from steadyrl.cli.stored_agent import StoredAgent


@dataclass(frozen=True)
class Export:
    """Write a trained policy to a file that runs without steadyrl.

    It is an ONNX model, or a file of NumPy arrays: docs/export.md.
    """

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file written by agent.save."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The file to write, such as policy.onnx or policy.npz."""
    risk_aversion: Annotated[float | None, named("LAMBDA", "--at")] = None
    """The lambda to act for, of an agent that was trained for a range of them; --at is the same."""

    action_masks: Flag = False
    """Give an ONNX model an input for the mask of the actions that are allowed."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.agents.export.export import check_suffix, export

        check_suffix(self.out)
        stored = StoredAgent.read(self.path).at(self.risk_aversion)
        stored.warn_if_unfinished()
        print(f"{stored}: its most likely actions are in {export(stored.agent, self.out, self.action_masks)}")
