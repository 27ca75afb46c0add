"""When checkpoints are written: often enough that little is lost, rarely enough that they cost next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from steadyrl.training.algorithm import Trainee
from steadyrl.training.records import Record
from steadyrl.training.run_folder import Run

SECONDS = 60.0
"""From one checkpoint to the next, by default."""
TIMES_ITS_COST = 99
"""The least time between checkpoints, in units of what the last one took: they take 1 % of the time at most."""


class CheckpointTimer:
    """A listener of the training loop, to be the last: writes what all others have recorded."""

    def __init__(self, runs: Sequence[Run], seconds: float = SECONDS, after: Callable[[], None] | None = None) -> None:
        """`after` is called when there are new checkpoints; with `seconds=0` that is after every record."""
        self._runs, self._seconds, self._after = runs, seconds, after
        self._cost, self._last = 0.0, time.monotonic()
        self._recorded = self._iterations()

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Write, if it is time."""
        self._recorded = self._iterations()
        pause = max(self._seconds, TIMES_ITS_COST * self._cost) if self._seconds else 0
        if time.monotonic() - self._last >= pause:
            self.write()

    def write(self) -> None:
        """Write checkpoints of all runs; not if a listener failed to record the latest rounds."""
        if self._iterations() != self._recorded:
            return
        start = time.monotonic()
        for run in self._runs:
            run.checkpoint()
        if self._after:
            self._after()
        self._last = time.monotonic()
        self._cost = self._last - start

    def _iterations(self) -> list[int]:
        return [run.agent.iterations for run in self._runs]
