"""Checkpoints on the way: often enough that little is lost, so seldom that they cost next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from steadyrl.runs import Run

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

SECONDS = 60.0
"""From one checkpoint to the next, by default."""
TIMES_ITS_COST = 99
"""The least time between checkpoints, in units of what the last one took: they take 1 % of the time at most."""


class Checkpoints:
    """A listener of `learn_together`, to be the last: writes what all others know."""

    def __init__(self, runs: Sequence[Run], seconds: float = SECONDS, after: Callable[[], None] | None = None) -> None:
        """`after` is called when new checkpoints are there; with `seconds=0` that is whenever this is told anything."""
        self._runs, self._seconds, self._after = runs, seconds, after
        self._took, self._last = 0.0, time.monotonic()
        self._told_until = self._rounds()

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Write, if it is time."""
        self._told_until = self._rounds()
        pause = max(self._seconds, TIMES_ITS_COST * self._took) if self._seconds else 0
        if time.monotonic() - self._last >= pause:
            self.write()

    def write(self) -> None:
        """Write checkpoints of all runs; not when a listener failed to take note of the latest rounds."""
        if self._rounds() != self._told_until:
            return
        start = time.monotonic()
        for run in self._runs:
            run.keep()
        if self._after:
            self._after()
        self._last = time.monotonic()
        self._took = self._last - start

    def _rounds(self) -> list[int]:
        return [run.agent.iterations for run in self._runs]
