"""Discovery of the runs in a folder, whether finished, still running, or interrupted."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.training.run_folder import CHECKPOINT, CONFIG, ERROR, METRICS, is_config, read_config, resume_files

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
    """The records of its metrics file; empty if there are none."""

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config["seed"])

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
            config = read_config(path.parent)
        except ValueError:  # Not JSON, or not a JSON object.
            config = {}
        if not is_config(config):
            notes[f"{CONFIG} does not describe a steadyrl run: skipped"].append(name)
            continue
        records = _read_records(path.parent)
        if not records:
            notes[f"nothing recorded in {METRICS}: not in the learning curves"].append(name)
        if (path.parent / ERROR).exists():
            notes[f"failed (see {ERROR}): training incomplete"].append(name)
        elif resume_files(path.parent):
            notes["still running or interrupted: training incomplete"].append(name)
        runs.append(FoundRun(path.parent, name, config, records))
    if not runs:
        raise FileNotFoundError(
            f"{root} holds no runs: none of its folders has a {CONFIG} written by steadyrl. "
            "Create runs with `steadyrl train`, `sweep` or `reproduce`."
        )
    return runs, notes


def _read_records(folder: Path) -> list[dict[str, Any]]:
    """The records up to the first invalid line: the last line of a running job may be incomplete."""
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
