"""Environments that are code of the user: they are created only if the user names them, never because a file does."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from steadyrl.base.shown import shown
from steadyrl.envs.resolve import resolve
from steadyrl.reports.page.runs_found import FoundRun

MAX_NAMED = 5
"""Maximum number of environments in the advice on what to type."""
_SHOWN = "render_mode"
"""The option that is not taken from a file, because it can open a window."""


@dataclass(frozen=True)
class NamedEnvs:
    """The environments that the user named, and those of the runs of a report."""

    root: Path
    """The folder of the report."""
    named: tuple[str, ...]
    recorded: tuple[str, ...]
    """The ids of the environments of all runs."""

    def __post_init__(self) -> None:
        for name in self.named:
            if name not in self.recorded:
                known = ", ".join(shown(env_id, 60, quotes=False) for env_id in sorted(set(self.recorded))[:MAX_NAMED])
                raise ValueError(f"no run below {self.root} was trained in environment {name}, but in: {known}.")

    def create(self, run: FoundRun) -> gym.Env[Any, Any] | None:
        """The environment of a run with its recorded options, if the user named it."""
        if run.env_id not in self.named:
            return None
        options = run.config["env"].get("options") or {}
        return resolve(run.env_id, **{name: value for name, value in options.items() if name != _SHOWN})

    def reason(self, run: FoundRun) -> str:
        """Why a run has no environment, and what to type."""
        if ":" not in run.env_id:
            return "its environment cannot be recreated here: not in the return distributions"
        ids = sorted({env_id for env_id in self.recorded if ":" in env_id and env_id not in self.named})
        options = " ".join(f"--env {shlex.quote(shown(env_id, 60, quotes=False))}" for env_id in ids[:MAX_NAMED])
        more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
        return (
            "not in the return distributions, because a file must not choose code to run (if you trust the "
            f"environment, type: steadyrl report {shlex.quote(str(self.root))} {options}{more})"
        )
