"""Discovery of the runs in a folder, whether finished, still running, or interrupted."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from steadyrl.base.shown import printable
from steadyrl.reports.configs import NOT_A_RUN, validated_config
from steadyrl.reports.curves import UPDATE_METRICS
from steadyrl.reports.records import validated_records
from steadyrl.reports.run_state import UNKNOWN, RunState, state_of_run
from steadyrl.training.run_files import CHECKPOINT, CONFIG, EVALUATIONS, METRICS

Notes = defaultdict[str, list[str]]
"""What the report cannot show: reason -> names of the runs."""


@dataclass(frozen=True)
class FoundRun:
    """The folder of one run."""

    folder: Path
    name: str
    """Its path relative to the folder of the report."""
    config: dict[str, Any] = field(repr=False)
    records: list[dict[str, Any]] = field(repr=False)
    """The records of its metrics file; empty if there are none, or if the file is damaged."""
    evaluations: list[dict[str, Any]] = field(repr=False, default_factory=list)
    """The same of its evaluations during training."""
    is_damaged: bool = False
    """Whether its metrics file is damaged."""
    state: RunState = UNKNOWN

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config["seed"])

    @property
    def env_id(self) -> str:
        """The id of its environment."""
        return str(self.config["env"]["id"])

    @property
    def env_option(self) -> str:
        """Names an environment of the user's own again in a command, because a file does not choose code to run."""
        if ":" not in self.env_id:
            return ""
        options = (self.config["env"].get("options") or {}).items()
        texts = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in options]
        return "".join([f" --env {shlex.quote(self.env_id)}", *(f" --env-set {shlex.quote(text)}" for text in texts)])

    @property
    def checkpoint(self) -> Path:
        """The path of its checkpoint, which may not exist."""
        return self.folder / CHECKPOINT

    @property
    def command(self) -> str:
        """The command that made it, without the path of the program."""
        program, _, rest = str(self.config.get("command", "")).partition(" ")
        return f"{PurePath(program).name} {rest}".strip()

    @property
    def episodes(self) -> int:
        """The number of training episodes so far."""
        return int(self.records[-1].get("episodes", 0)) if self.records else 0


def find_runs(root: Path) -> tuple[list[FoundRun], Notes]:
    """All runs in `root` and its subfolders, sorted by path."""
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such folder.")
    runs, notes = [], Notes(list)
    for path in sorted(root.rglob(CONFIG)):
        name = path.parent.relative_to(root).as_posix()
        try:
            config = validated_config(path.parent)
        except ValueError as error:
            notes[f"{error}: skipped"].append(name)
            continue
        records = _records(path.parent, METRICS, "learning curves", name, notes)
        evaluations = _records(path.parent, EVALUATIONS, "evaluation curves", name, notes)
        state = state_of_run(path.parent)
        if state.is_incomplete:
            notes[f"{state}: training incomplete"].append(name)
        run = FoundRun(path.parent, name, config, records or [], evaluations or [], records is None, state)
        runs.append(run)
    if not runs and notes.keys() - {f"{NOT_A_RUN}: skipped"}:
        raise ValueError(all_damaged(root, notes))
    if not runs:
        raise FileNotFoundError(
            f"{root} holds no runs: none of its folders has a {CONFIG} written by steadyrl. "
            "Create runs with `steadyrl train`, `sweep` or `reproduce`."
        )
    return runs, notes


def all_damaged(root: Path, notes: Notes) -> str:
    """One line on a folder in which no run can be shown."""
    reason, names = next(iter(notes.items()))
    number = len({name for names in notes.values() for name in names})
    return printable(
        f"{root}: no run in it can be shown ({number} damaged or incomplete), such as {names[0]}: {reason}."
    )


def _records(folder: Path, file: str, where: str, name: str, notes: Notes) -> list[dict[str, float]] | None:
    """The records in a file of a run, with a note if there are none to be shown; None if the file is damaged."""
    try:
        records, not_finite = validated_records(folder / file)
    except ValueError as error:
        notes[f"{str(error).rstrip('.')}: not in the {where}"].append(name)
        return None
    if not records and file == METRICS:
        notes[f"nothing recorded in {file}: not in the {where}"].append(name)
    # Metrics of updates may be undefined, such as the explained variance of equal returns.
    if infinite := sorted(not_finite - UPDATE_METRICS.keys()):
        notes[f"not a finite number in some records: {', '.join(infinite)}, left out there"].append(name)
    return records
