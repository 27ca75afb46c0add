"""Metrics as TensorBoard events."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from steadyrl.training.loggers import RunInfo, finite_metrics, require
from steadyrl.training.records import Record

FOLDER = "tensorboard"
"""Where in a run folder the events are."""
AXES = ("episodes", "timesteps")
"""Every metric is logged over both, under `by_episodes/` and `by_timesteps/`."""


class TensorBoardLogger:
    """Writes events to a folder of your choice, or else to `tensorboard` in the run folder.

    After a crash, events since the last checkpoint are in the folder twice, with the same values, because a resumed run
    repeats these rounds exactly; the curves lie on each other. TensorBoard's own remedy, a purge step, would remove
    too much: it holds for a whole folder, and here half of the metrics count episodes and the other half timesteps.
    """

    writes_files = True

    def __init__(self, folder: str | Path | None = None) -> None:
        self._given = None if folder is None else Path(folder)
        self.folder = self._given
        self._writer: Any = None

    @staticmethod
    def check_installed() -> Any:
        """The package that writes events, or an error that says how to get it."""
        return require("tensorboardX", "tensorboard", "TensorBoard events")

    def start(self, info: RunInfo) -> None:
        """See `Logger`."""
        self.check_installed()
        self.folder = self._given or info.path("tensorboard", FOLDER)

    def log(self, record: Record) -> None:
        """See `Logger`; the first record creates the file."""
        if self._writer is None:
            # tensorboardX names files by the second: another writer in the same one would overwrite the first.
            unique = f".{time.time_ns()}"
            self._writer = self.check_installed().SummaryWriter(str(self.folder), filename_suffix=unique)
        for name, value in finite_metrics(record).items():
            for axis in AXES:
                self._writer.add_scalar(f"by_{axis}/{name}", value, record[axis], walltime=record["time"])
        self._writer.flush()

    def close(self) -> None:
        """See `Logger`."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
