"""Progress bars of training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from steadyrl.training.algorithm import Trainee
from steadyrl.training.records import Record

SHOWN = {
    "return": "return",
    "undiscounted_gini_deviation": "GD",
    "approx_kl": "KL",
    "entropy": "entropy",
    "mean_q": "Q",
}
"""The metrics shown during training, and their labels; two rates of the environment come after GD."""
SHORT = {"episodes": "ep", "timesteps": "steps"}


def make_bar() -> Progress:
    """A progress bar on standard error; where that is no terminal, only its last state is written."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=5),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
    )


class TrainingProgress:
    """A listener of the training loop: progress, time remaining, and the metrics averaged over the agents."""

    def __init__(self, description: str, unit: str, total: int, agents: Sequence[Trainee], done: int = 0) -> None:
        """`total` counts from the agents' state now, or with `done` from the start of their training."""
        self._agents, self._unit, self._before = agents, unit, _mean_count(agents, unit) - done
        self._bar = make_bar()
        counts: dict[str, Any] = {"total": total, "completed": done, "unit": SHORT[unit]}
        self._task = self._bar.add_task(description, **counts, note="compiling", start=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Show the latest rounds; the clock starts with the first, when the program is compiled."""
        self._bar.start_task(self._task)
        completed = _mean_count(self._agents, self._unit) - self._before
        self._bar.update(self._task, completed=completed, note=_note(records))


class ProgressReporter:
    """A listener of the training loop that reports progress as plain data, to a process that has a terminal."""

    PAUSE = 0.5
    """Seconds between two reports at least."""

    def __init__(self, report: Callable[[Any], None], unit: str, total: int, agents: Sequence[Trainee]) -> None:
        self._report, self._unit, self._total, self._agents = report, unit, total, agents
        self._send("compiling")

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Report where the agents are."""
        if time.monotonic() - self._last >= self.PAUSE:
            self._send(_note(records))

    def _send(self, note: str) -> None:
        done = _mean_count(self._agents, self._unit)
        self._report({"done": done, "total": self._total, "unit": SHORT[self._unit], "note": note})
        self._last = time.monotonic()


def _mean_count(agents: Sequence[Trainee], unit: str) -> float:
    return float(np.mean([getattr(agent, unit) for agent in agents]))


def _note(records_of_agents: Sequence[Sequence[Record]]) -> str:
    """The means of a few metrics, in one line."""
    records = [record for records in records_of_agents for record in records]
    rates = [name for name in records[-1] if name.endswith("_rate")] if records else []
    labels = dict(list(SHOWN.items())[:2])
    labels |= {name: name.removesuffix("_rate").replace("_", " ") for name in rates[:2]}
    shown = []
    for name, label in {**labels, **SHOWN}.items():
        values = [record[name] for record in records if name in record]
        if values:
            mean = np.mean(values)
            shown.append(f"{label} {mean:.0%}" if name.endswith("_rate") else f"{label} {_short(mean)}")
    return " ".join(shown)


def _short(value: Any) -> str:
    return f"{value:.1f}" if abs(value) >= 1 or value == 0 else f"{value:.2g}"
