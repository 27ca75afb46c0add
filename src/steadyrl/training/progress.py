"""Progress of training: a bar in a terminal or notebook, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from steadyrl.rollouts.simulators.choose import IN_PROGRAMS
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


class Speed:
    """Timesteps and progress per second, lately.

    The first round, in which programs are compiled, counts only until there is a second one; of agents whose episodes
    are part of the program it does not count, because then almost all of its time is that of the compiler.
    """

    WINDOW = 30.0
    """Seconds that are taken into account."""

    def __init__(self, done: float, timesteps: float, compiled: bool = False) -> None:
        """`compiled` is whether episodes are part of the program."""
        self._samples = deque([(time.monotonic(), done, timesteps)])
        self._rounds, self._rounds_to_skip = 0, 1 if compiled else 2

    def add(self, done: float, timesteps: float) -> None:
        """What is done now, and the steps taken for it."""
        self._samples.append((time.monotonic(), done, timesteps))
        self._rounds += 1
        if self._rounds == self._rounds_to_skip:
            self._samples.popleft()
        oldest = self._samples[-1][0] - self.WINDOW
        while len(self._samples) > 2 and self._samples[1][0] < oldest:
            self._samples.popleft()

    @property
    def steps_per_second(self) -> float:
        """0 if it is not known yet."""
        return self._rate(2)

    def seconds_left(self, remaining: float) -> float | None:
        """How long the rest takes at this speed; None if that is not known yet."""
        rate = self._rate(1)
        return remaining / rate if rate > 0 and remaining > 0 else None

    def _rate(self, entry: int) -> float:
        first, last = self._samples[0], self._samples[-1]
        return (last[entry] - first[entry]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


class LineTimer:
    """When to print a line of progress: every 10 seconds, or every 10 % if that takes at least a second."""

    SECONDS, FRACTION, PAUSE = 10.0, 0.1, 1.0

    def __init__(self, fraction: float = 0.0) -> None:
        self._last, self._fraction = time.monotonic(), fraction

    def is_due(self, fraction: float) -> bool:
        """Whether to print one now; if so, the wait for the next begins."""
        now = time.monotonic()
        waited, gained = now - self._last, fraction - self._fraction
        if waited < self.SECONDS and not (gained > self.FRACTION - 1e-9 and waited >= self.PAUSE):
            return False
        self._last, self._fraction = now, fraction
        return True


class _Fitting:
    """Text of several parts: as many of the first ones as fit on the line."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = list(self._parts)
        while len(parts) > 1 and len(", ".join(parts)) > options.max_width:
            parts.pop()
        yield Text(", ".join(parts), no_wrap=True, overflow="ellipsis")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, len(", ".join(self._parts))))


class _NoteColumn(ProgressColumn):
    """The field `note` of a task: its parts, or a function that returns them. Takes the width that is left."""

    def get_table_column(self) -> Column:
        return Column(ratio=1, no_wrap=True)

    def render(self, task: Task) -> Any:
        note = task.fields["note"]
        return _Fitting(note() if callable(note) else note)


def make_bar(console: Console) -> Progress:
    """A progress bar; its tasks have the fields `count`, such as "40/100 ep", and `note`."""
    name = Column(no_wrap=True, overflow="ellipsis", max_width=console.width * 2 // 5)
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=min(max(console.width // 3 - 16, 8), 40)),
        TextColumn("{task.fields[count]}", markup=False),
        _NoteColumn(),
        console=console,
        expand=True,
    )


def shows_bars(console: Console) -> bool:
    """Whether a bar can be drawn there; a file or a pipe gets lines, whatever FORCE_COLOR says."""
    isatty = getattr(console.file, "isatty", None)
    with suppress(ValueError):  # A file that is closed.
        return console.is_jupyter or bool(isatty and isatty() and not console.is_dumb_terminal)
    return False


def print_line(line: str) -> None:
    """A line of progress, at once; training continues if nobody can read it."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class TrainingProgress:
    """A listener of the training loop: progress, speed, time remaining, and the metrics averaged over the agents.

    Where standard error is no terminal, the state at the end is printed in one line; with `lines`, also states before.
    """

    def __init__(
        self,
        description: str,
        unit: str,
        total: int,
        agents: Sequence[Trainee],
        done: int = 0,
        lines: bool = False,
    ) -> None:
        """`total` counts from the agents' state now, or with `done` from the start of their training."""
        self._description, self._unit, self._total, self._agents = description, unit, total, agents
        self._before, self._lines = _mean_count(agents, unit) - done, lines
        self._speed, self._timer = Speed(done, _steps(agents), agents[0].engine in IN_PROGRAMS), LineTimer(done / total)
        self._note: list[str] = []
        console = Console(stderr=True)
        self._bar = make_bar(console) if shows_bars(console) else None
        if self._bar is not None:
            count = self._count("/", SHORT[unit])
            first = _FirstRounds(agents)
            self._task = self._bar.add_task(description, total=total, completed=done, count=count, note=first)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        elif self._lines:
            print_line(f"{self._description}: {self._count(' of ', self._unit)}, {_FirstRounds(self._agents)()[0]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._note:
            print_line(self._line())

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Show the latest rounds."""
        self._speed.add(self._done, _steps(self._agents))
        self._note = _metrics(records)
        if self._bar is not None:
            note = [*self._timing()[::-1], *self._note]
            self._bar.update(self._task, completed=self._done, count=self._count("/", SHORT[self._unit]), note=note)
        elif self._lines and self._done < self._total and self._timer.is_due(self._done / self._total):
            print_line(self._line())

    @property
    def _done(self) -> float:
        return _mean_count(self._agents, self._unit) - self._before

    def _count(self, of: str, unit: str) -> str:
        return f"{self._done:,.0f}{of}{self._total:,} {unit}"

    def _line(self) -> str:
        count = f"{self._description}: {self._count(' of ', self._unit)} ({percent(self._done / self._total)})"
        return ", ".join([count, *self._note, *self._timing("about ")])

    def _timing(self, about: str = "") -> list[str]:
        left = self._speed.seconds_left(self._total - self._done)
        return speed_and_time(self._speed.steps_per_second, left, about)


class ProgressReporter:
    """A listener of the training loop that reports progress as plain data, to a process that has a terminal."""

    PAUSE = 0.5
    """Seconds between two reports at least."""

    def __init__(self, report: Callable[[Any], None], unit: str, total: int, agents: Sequence[Trainee]) -> None:
        self._report, self._unit, self._total, self._agents = report, unit, total, agents
        self._speed = Speed(_mean_count(agents, unit), _steps(agents), agents[0].engine in IN_PROGRAMS)
        self._send(_FirstRounds(agents)())

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Report where the agents are."""
        if time.monotonic() - self._last >= self.PAUSE:
            self._speed.add(_mean_count(self._agents, self._unit), _steps(self._agents))
            self._send(_metrics(records))

    def _send(self, note: list[str]) -> None:
        done = _mean_count(self._agents, self._unit)
        counts = {"done": done, "total": self._total, "unit": SHORT[self._unit]}
        self._report({**counts, "note": note, "steps_per_second": self._speed.steps_per_second})
        self._last = time.monotonic()


class _FirstRounds:
    """What is happening until the first rounds are over, for the note of a bar."""

    def __init__(self, agents: Sequence[Trainee]) -> None:
        self._agent = agents[0]
        self._added = self._steps_stored()

    def __call__(self) -> list[str]:
        if self._agent.engine in IN_PROGRAMS:
            return ["compiling"]
        playing = f"playing the {'next' if self._agent.episodes else 'first'} episodes"
        steps = self._steps_stored() - self._added
        return [f"{playing}: {steps:,} steps" if steps else playing]

    def _steps_stored(self) -> int:
        """Steps in the replay buffer: the only ones that are known before an episode is over."""
        return int(getattr(self._agent.replay_buffer, "added", 0))


def speed_and_time(steps_per_second: float, seconds_left: float | None, about: str = "") -> list[str]:
    """The speed and the time that remains, as far as they are known."""
    speed = [f"{steps_per_second:,.0f} steps/s"] if steps_per_second > 0 else []
    return [*speed, f"{about}{_duration(seconds_left)} left"] if seconds_left is not None else speed


def percent(fraction: float) -> str:
    """Such as 20 %; 100 % only when everything is done."""
    return f"{min(math.floor(100 * fraction + 1e-9), 100)} %"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _mean_count(agents: Sequence[Trainee], unit: str) -> float:
    return float(np.mean([getattr(agent, unit) for agent in agents]))


def _steps(agents: Sequence[Trainee]) -> int:
    return sum(agent.timesteps for agent in agents)


def _metrics(records_of_agents: Sequence[Sequence[Record]]) -> list[str]:
    """The means of a few metrics, each with its label."""
    records = [record for records in records_of_agents for record in records]
    rates = [name for name in records[-1] if name.endswith("_rate")] if records else []
    labels = dict(list(SHOWN.items())[:2])
    labels |= {name: name.removesuffix("_rate").replace("_", " ") for name in rates[:2]}
    shown = []
    for name, label in {**labels, **SHOWN}.items():
        values = [record[name] for record in records if name in record]
        if values:
            mean = np.mean(values)
            shown.append(f"{label} {percent(float(mean))}" if name.endswith("_rate") else f"{label} {_short(mean)}")
    return shown


def _short(value: Any) -> str:
    return f"{value:.1f}" if abs(value) >= 1 or value == 0 else f"{value:.2g}"
