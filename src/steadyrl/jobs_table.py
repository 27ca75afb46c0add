"""One live table of many jobs: those under way, each with its progress, and all of them with the time left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import TaskID

from steadyrl.progress import bar

if TYPE_CHECKING:
    from steadyrl.job import Job

Show = Callable[[int, Any], None]
"""`show(number of the job, what it told)`; None when it is done, and text if it failed."""


class JobsTable:
    """Shown on standard error, as long as this is entered; where that is no terminal, a line when a job is done."""

    def __init__(self, jobs: Sequence[Job], runs: int) -> None:
        """`runs` is their number with those that were finished before."""
        self._jobs, self._runs = jobs, runs
        self._bar = bar()
        self._done = [0.0] * len(jobs)
        self._rows: dict[int, TaskID] = {}
        self._before = runs - sum(len(job.seeds) for job in jobs)
        counts: dict[str, Any] = {"total": runs, "completed": self._before, "unit": f"of {runs} runs"}
        self._all = self._bar.add_task("all", **counts, note="starting")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for row in self._rows.values():
            self._bar.update(row, visible=False)
        self._bar.stop()

    def show(self, number: int, told: Any) -> None:
        """Take note of what a job told, or of its end."""
        job = self._jobs[number]
        if not isinstance(told, dict):
            self._done[number] = 1.0
            if number in self._rows:
                self._bar.update(self._rows.pop(number), visible=False)
            if told is not None or not self._bar.console.is_terminal:
                end = "done" if told is None else "failed"
                self._bar.console.print(f"{job.title}: {end}", markup=False, highlight=False)
        else:
            self._done[number] = min(told["done"] / told["total"], 1.0)
            if number not in self._rows:
                unit = f"of {told['total']:,} {told['unit']}"
                counts = {"total": told["total"], "completed": told["done"], "unit": unit}
                self._rows[number] = self._bar.add_task(job.title, **counts, note=told["note"])
            self._bar.update(self._rows[number], completed=told["done"], note=told["note"])
        runs = self._before + sum(len(job.seeds) * done for job, done in zip(self._jobs, self._done, strict=True))
        self._bar.update(self._all, completed=runs, note="")
