"""What a person sees while something takes its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

SHOWN = {"return": "return", "undiscounted_gini_deviation": "GD"}
"""The metrics that are shown while learning, and what they are called there; two rates of the environment follow."""


SHORT = {"episodes": "ep", "timesteps": "steps"}


def bar() -> Progress:
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
    """A listener of `learn_together`: how far it is, the time left, and how the agents are doing on average."""

    def __init__(self, description: str, unit: str, total: int, agents: Sequence[Agent], done: int = 0) -> None:
        """`total` is more than what the agents have learned from now, or with `done` of it than at their start."""
        self._agents, self._unit, self._before = agents, unit, _mean_count(agents, unit) - done
        self._bar = bar()
        counts: dict[str, Any] = {"total": total, "completed": done, "unit": SHORT[unit]}
        self._task = self._bar.add_task(description, **counts, note="compiling", start=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Take note of the latest rounds; the clock starts with the first, when the program is compiled."""
        self._bar.start_task(self._task)
        records = [record for of_agent in metrics for record in of_agent]
        self._bar.update(
            self._task, completed=_mean_count(self._agents, self._unit) - self._before, note=_note(records)
        )


class TellingProgress:
    """A listener of `learn_together` that passes on how far it is, as plain data, to whoever has a terminal."""

    PAUSE = 0.5
    """Seconds between two messages at least."""

    def __init__(self, tell: Callable[[Any], None], unit: str, total: int, agents: Sequence[Agent]) -> None:
        self._tell, self._unit, self._total, self._agents = tell, unit, total, agents
        self._say("compiling")

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Pass on where the agents are."""
        if time.monotonic() - self._last >= self.PAUSE:
            records = [record for of_agent in metrics for record in of_agent]
            self._say(_note(records))

    def _say(self, note: str) -> None:
        done = _mean_count(self._agents, self._unit)
        self._tell({"done": done, "total": self._total, "unit": SHORT[self._unit], "note": note})
        self._last = time.monotonic()


def _mean_count(agents: Sequence[Agent], unit: str) -> float:
    return float(np.mean([getattr(agent, unit) for agent in agents]))


def _note(records: Sequence[dict[str, Any]]) -> str:
    shown = []
    rates = [name for name in records[-1] if name.endswith("_rate")] if records else []
    titles = SHOWN | {name: name.removesuffix("_rate").replace("_", " ") for name in rates[:2]}
    for name, title in titles.items():
        values = [record[name] for record in records if name in record]
        if values:
            mean = np.mean(values)
            shown.append(f"{title} {mean:.0%}" if name.endswith("_rate") else f"{title} {mean:.1f}")
    return " ".join(shown)
