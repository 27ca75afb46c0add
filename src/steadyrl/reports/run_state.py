"""How far a run has come: complete, failed for a reason, or still running."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from steadyrl.base.shown import shown
from steadyrl.training.run_files import ERROR, has_error, resume_files
from steadyrl.training.run_folder import is_complete

COMPLETE, FAILED, RUNNING = "complete", "failed", "still running or interrupted"
MAX_READ = 20_000
"""Bytes at the end of error.txt that are searched for the reason."""


class RunState(NamedTuple):
    """The state of a run; `str` of it is a few words."""

    name: str
    """One of COMPLETE, FAILED and RUNNING; empty if the folder does not say."""
    reason: str = ""
    """The error that ended training, as Python printed it: its last line."""

    @property
    def is_incomplete(self) -> bool:
        """Whether training is known not to have ended."""
        return self.name in (FAILED, RUNNING)

    def __str__(self) -> str:
        return f"{self.name} (see {ERROR})" if self.reason else self.name


UNKNOWN = RunState("")


def state_of_run(folder: Path) -> RunState:
    """The state of the run in a folder."""
    with suppress(ValueError, OSError):  # A damaged checkpoint is reported when it is evaluated.
        if is_complete(folder):
            return RunState(COMPLETE)
    with suppress(OSError):
        if has_error(folder):
            return RunState(FAILED, _reason(folder / ERROR))
    return RunState(RUNNING) if resume_files(folder) else UNKNOWN


def _reason(path: Path) -> str:
    """The last line of a traceback that is not indented, which names the error."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_READ))
        lines = file.read(MAX_READ).decode(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not line.startswith((" ", "\t"))]
    if len(told) < 2:
        return "no reason recorded"
    return shown(re.sub(r"^(\w+\.)+(?=\w+:)", "", told[-1]), 200, quotes=False)
