"""Discovery of the runs in a folder, whether finished, still running, or interrupted."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.base.shown import printable
from steadyrl.reports.configs import NOT_A_RUN, validated_config
from steadyrl.reports.curves import UPDATE_METRICS
from steadyrl.reports.records import validated_records
from steadyrl.training.run_files import CHECKPOINT, CONFIG, ERROR, METRICS, has_error, resume_files
from steadyrl.training.run_folder import is_complete

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
    is_damaged: bool = False
    """Whether its metrics file is damaged."""

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config["seed"])

    @property
    def env_id(self) -> str:
        """The id of its environment."""
        return str(self.config["env"]["id"])

    @property
    def checkpoint(self) -> Path:
        """The path of its checkpoint, which may not exist."""
        return self.folder / CHECKPOINT

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
        records = _records(path.parent, name, notes)
        if state := _incomplete(path.parent):
            notes[f"{state}: training incomplete"].append(name)
        runs.append(FoundRun(path.parent, name, config, records or [], is_damaged=records is None))
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


def _incomplete(folder: Path) -> str:
    """Why a run is not complete; empty if it is."""
    with suppress(ValueError):  # A damaged checkpoint is reported when it is evaluated.
        if is_complete(folder):
            return ""
    if has_error(folder):
        return f"failed (see {ERROR})"
    return "still running or interrupted" if resume_files(folder) else ""


def _records(folder: Path, name: str, notes: Notes) -> list[dict[str, float]] | None:
    """The records of a run, with a note if there are none; None if the file is damaged."""
    try:
        records, not_finite = validated_records(folder / METRICS)
    except ValueError as error:
        notes[f"{str(error).rstrip('.')}: not in the learning curves"].append(name)
        return None
    if not records:
        notes[f"nothing recorded in {METRICS}: not in the learning curves"].append(name)
    # Metrics of updates may be undefined, such as the explained variance of equal returns.
    if infinite := sorted(not_finite - UPDATE_METRICS.keys()):
        notes[f"not a finite number in some records: {', '.join(infinite)}, left out there"].append(name)
    return records
