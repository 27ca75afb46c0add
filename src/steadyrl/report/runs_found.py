"""The runs below a folder, as they are: finished, under way, or broken off."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.runs import CHECKPOINT, CONFIG, ERROR, METRICS, is_config, read_config, resume_files

Notes = defaultdict[str, list[str]]
"""What the page has to leave out: reason -> the names of the runs."""


@dataclass(frozen=True)
class FoundRun:
    """One run's folder."""

    folder: Path
    name: str
    """Its path from the folder that the page is about."""
    config: dict[str, Any] = field(repr=False)
    records: list[dict[str, Any]] = field(repr=False)
    """Empty where nothing was recorded."""

    @property
    def seed(self) -> int:
        """The seed of everything random in it."""
        return int(self.config["seed"])

    @property
    def checkpoint(self) -> Path:
        """Where its agent is, if it was saved."""
        return self.folder / CHECKPOINT

    @property
    def episodes(self) -> int:
        """How many episodes it has learned from."""
        return int(self.records[-1].get("episodes", 0)) if self.records else 0


def find_runs(root: Path) -> tuple[list[FoundRun], Notes]:
    """Every run at or below `root`, in the order of their paths."""
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such folder.")
    runs, notes = [], Notes(list)
    for path in sorted(root.rglob(CONFIG)):
        name = path.parent.relative_to(root).as_posix()
        try:
            config = read_config(path.parent)
        except ValueError:  # Not JSON, or not an object.
            config = {}
        if not is_config(config):
            notes[f"{CONFIG} is not that of a run: left out"].append(name)
            continue
        records = _read_records(path.parent)
        if not records:
            notes[f"nothing recorded in {METRICS}: not in the learning curves"].append(name)
        if (path.parent / ERROR).exists():
            notes[f"failed, as its {ERROR} tells: not trained to the end"].append(name)
        elif resume_files(path.parent):
            notes["under way or stopped: not trained to the end"].append(name)
        runs.append(FoundRun(path.parent, name, config, records))
    if not runs:
        raise FileNotFoundError(
            f"{root} holds no runs: no folder in it has a {CONFIG} of steadyrl. "
            "Make one with `steadyrl train`, `sweep` or `reproduce`."
        )
    return runs, notes


def _read_records(folder: Path) -> list[dict[str, Any]]:
    """The records up to the first that cannot be read: the last line of a run under way may be half written."""
    path = folder / METRICS
    records = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not isinstance(record, dict):
            break
        records.append(record)
    return records
