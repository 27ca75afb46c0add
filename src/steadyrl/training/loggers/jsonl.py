"""Metrics as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

from steadyrl.base.files import append_atomic
from steadyrl.training.loggers import RunInfo, finite_metrics
from steadyrl.training.records import COUNTERS, Record

FILE = "log.jsonl"
"""The name of the log in a run folder."""


class JSONLinesLogger:
    """Appends a line for each record: to a file of your choice, or else to log.jsonl in the run folder.

    Run folders have a metrics.jsonl anyway, which is cut back to the last checkpoint when a run is resumed. This log is
    never cut: rounds that had to be repeated after a crash are in it twice, with the same values.
    """

    writes_files = True

    def __init__(self, path: str | Path | None = None) -> None:
        self._given = None if path is None else Path(path)
        self.path = self._given

    def start(self, info: RunInfo) -> None:
        """See `Logger`."""
        self.path = self._given or info.path("jsonl", FILE)

    def log(self, record: Record) -> None:
        """See `Logger`."""
        assert self.path is not None, "started, or made with a path"
        counters = {name: record[name] for name in COUNTERS if name in record}
        append_atomic(self.path, json.dumps({**counters, **finite_metrics(record)}) + "\n")

    def close(self) -> None:
        """Every line is written at once."""
