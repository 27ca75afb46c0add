"""Progress of many jobs: the running ones in a live table, and all of them with the time remaining."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import TaskID

from steadyrl.training.progress import LineTimer, make_bar, percent, print_line, shows_bars, speed_and_time

Show = Callable[[int, Any], None]
"""`show(number of the job, report)`; the report is None when it is done, and text if it failed."""


class Titled(Protocol):
    """A job as the table knows it."""

    @property
    def title(self) -> str:
        """The job in a few words."""
        ...

    @property
    def runs(self) -> Sequence[Any]:
        """What is counted."""
        ...


class JobsTable:
    """A context manager: the table on standard error; where that is no terminal, lines about all jobs together."""

    def __init__(self, jobs: Sequence[Titled], runs: int, silent: bool = False) -> None:
        """`runs` is the number of all runs, including those that were complete before; `silent` shows failures only."""
        self._jobs, self._runs, self._silent = jobs, runs, silent
        self._done: dict[int, float] = {}
        self._speeds: dict[int, float] = {}
        self._rows: dict[int, TaskID] = {}
        self._before = runs - sum(len(job.runs) for job in jobs)
        self._resumed, self._started, self._timer = 0.0, time.monotonic(), LineTimer(self._before / runs)
        console = Console(stderr=True)
        self._bar = make_bar(console) if shows_bars(console) and not silent else None
        if self._bar is not None:
            note = ["starting"]
            self._all = self._bar.add_task("all", total=runs, completed=self._before, count=self._count("/"), note=note)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            for row in self._rows.values():
                self._bar.update(row, visible=False)
            self._bar.stop()
        elif not self._silent:
            print_line(self._line())

    def show(self, number: int, report: Any) -> None:
        """Show what a job reported, or its end."""
        job = self._jobs[number]
        if isinstance(report, dict):
            done = min(report["done"] / report["total"], 1.0)
            if number not in self._done:
                self._resumed += len(job.runs) * done
            self._done[number], self._speeds[number] = done, report["steps_per_second"]
            self._update_row(number, report)
        else:
            self._done[number] = 1.0
            self._speeds.pop(number, None)
            self._end_row(number)
            if report is not None or (self._bar is None and not self._silent):
                self._print(f"{job.title}: {'done' if report is None else 'failed'}")
        self._show_all()

    def _update_row(self, number: int, report: dict[str, Any]) -> None:
        if self._bar is None:
            return
        done, total = report["done"], report["total"]
        counts = {"completed": done, "count": f"{done:,.0f}/{total:,} {report['unit']}", "note": report["note"]}
        if number not in self._rows:
            self._rows[number] = self._bar.add_task(self._jobs[number].title, total=total, **counts)
        self._bar.update(self._rows[number], **counts)

    def _end_row(self, number: int) -> None:
        if self._bar is not None and number in self._rows:
            self._bar.update(self._rows.pop(number), visible=False)

    def _show_all(self) -> None:
        done = self._runs_done
        if self._bar is not None:
            self._bar.update(self._all, completed=done, count=self._count("/"), note=self._timing()[::-1])
        elif not self._silent and done < self._runs and self._timer.is_due(done / self._runs):
            print_line(self._line())

    def _line(self) -> str:
        running = [f"{len(self._speeds)} jobs running"] if len(self._speeds) > 1 else []
        count = f"all: {self._count(' of ')} ({percent(self._runs_done / self._runs)})"
        return ", ".join([count, *running, *self._timing("about ")])

    @property
    def _runs_done(self) -> float:
        """Runs that are complete, and the parts of the others."""
        return self._before + sum(len(self._jobs[number].runs) * done for number, done in self._done.items())

    def _count(self, of: str) -> str:
        return f"{self._runs_done:,.1f}".removesuffix(".0") + f"{of}{self._runs:,} runs"

    def _timing(self, about: str = "") -> list[str]:
        """Of all jobs together; the rest of the runs takes as long as those that were trained here."""
        gained, remaining = self._runs_done - self._before - self._resumed, self._runs - self._runs_done
        seconds = time.monotonic() - self._started
        left = remaining * seconds / gained if gained > 0 and remaining > 0 else None
        return speed_and_time(sum(self._speeds.values()), left, about)

    def _print(self, line: str) -> None:
        if self._bar is None:
            print_line(line)
        else:
            self._bar.console.print(line, markup=False, highlight=False)
