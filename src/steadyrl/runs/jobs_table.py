"""One live table of many jobs: the running ones with their progress, and all of them with the time remaining."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import TaskID

from steadyrl.training.progress import make_bar

if TYPE_CHECKING:
    from steadyrl.runs.job import Job

Show = Callable[[int, Any], None]
"""`show(number of the job, report)`; the report is None when it is done, and text if it failed."""


class JobsTable:
    """A context manager: the table on standard error; where that is no terminal, a line when a job is done."""

    def __init__(self, jobs: Sequence[Job], runs: int) -> None:
        """`runs` is the number of all runs, including those that were complete before."""
        self._jobs, self._runs = jobs, runs
        self._bar = make_bar()
        self._done = [0.0] * len(jobs)
        self._rows: dict[int, TaskID] = {}
        self._before = runs - sum(len(job.runs) for job in jobs)
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

    def show(self, number: int, report: Any) -> None:
        """Show what a job reported, or its end."""
        job = self._jobs[number]
        if not isinstance(report, dict):
            self._done[number] = 1.0
            if number in self._rows:
                self._bar.update(self._rows.pop(number), visible=False)
            if report is not None or not self._bar.console.is_terminal:
                end = "done" if report is None else "failed"
                self._bar.console.print(f"{job.title}: {end}", markup=False, highlight=False)
        else:
            self._done[number] = min(report["done"] / report["total"], 1.0)
            if number not in self._rows:
                unit = f"of {report['total']:,} {report['unit']}"
                counts = {"total": report["total"], "completed": report["done"], "unit": unit}
                self._rows[number] = self._bar.add_task(job.title, **counts, note=report["note"])
            self._bar.update(self._rows[number], completed=report["done"], note=report["note"])
        runs = self._before + sum(len(job.runs) * done for job, done in zip(self._jobs, self._done, strict=True))
        self._bar.update(self._all, completed=runs, note="")
