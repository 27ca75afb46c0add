"""Whole episodes of a batch, played in several processes at the same time: for environments that are slow in Python.

An episode has its own seed and its own random stream, and its rows in matrix products (`Blocks`) do not depend on other
episodes. So a batch is the same, bit for bit, in whichever processes it was played.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from steadyrl.base.processes import UNGUARDED, exit_reason, spawn
from steadyrl.base.shared_arrays import SharedArrays
from steadyrl.base.shared_pickle import SharedPickle
from steadyrl.base.signals import defer_signals
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.collector import FaultyEnvironmentError, Limits, stacked_metrics
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.worker_process import ARRAYS, work

DEATHS = 3
"""After so many deaths of the process that plays it, an episode is not played again; after so many deaths in a row of
processes that have not begun an episode, no more are started."""
CLOSE_SECONDS = 10.0
"""How long workers have to close their environments, before they are killed."""


class EpisodeWorkers:
    """Processes that play the episodes of batches. They are started with the first batch."""

    def __init__(self, number: int, make_env: Callable[[], Any]) -> None:
        self.number, self._make = number, pickle.dumps(make_env)
        self._workers: list[_Worker] = []
        self._shared: SharedPickle | None = None

    def collect(self, actor: Actor, seeds: Sequence[int], limits: Limits, deterministic: bool = False) -> Episodes:
        """As `collector.collect`: one whole episode from each seed."""
        self._shared = self._shared or SharedPickle()
        # Nobody reads it now: workers read a batch when they begin their first episode of it.
        layouts = self._shared.write((self._make, actor, limits._replace(metric_names=None), deterministic))
        batch = pickle.dumps(("batch", layouts))
        try:
            played = _Batch(self, batch, seeds, limits).play()
        except BaseException:  # They are in the middle of episodes that nobody waits for.
            self._stop(terminate=True)
            raise
        return _joined(played, limits)

    def close(self) -> None:
        """Let the workers close their environments and end."""
        self._stop(terminate=False)

    def idle(self, number: int, batch: bytes) -> list[_Worker]:
        """As many workers as `number` episodes need, with the policy of the batch; those that died are replaced."""
        for worker in [worker for worker in self._workers if not worker.process.is_alive()]:
            self.remove(worker)
        missing = min(self.number, number) - len(self._workers)
        for worker in self._workers:
            worker.send(batch)
        return [*self._workers, *[self.add(batch) for _ in range(missing)]]

    def add(self, batch: bytes) -> _Worker:
        """One more worker."""
        with defer_signals():  # A process that is started is known here.
            worker = _Worker(self._shared)
            self._workers.append(worker)
        worker.send(batch)
        return worker

    def remove(self, worker: _Worker) -> None:
        """Forget a worker that has died."""
        worker.release()
        self._workers.remove(worker)

    def _stop(self, terminate: bool) -> None:
        with defer_signals():
            for worker in self._workers:
                if terminate:
                    worker.process.terminate()
                worker.send(pickle.dumps(("close",)))
            for worker in self._workers:
                worker.process.join(CLOSE_SECONDS)
                worker.process.kill()
                worker.release()
            self._workers.clear()
            if self._shared is not None:
                self._shared.close()
                self._shared = None


class _Worker:
    """A process that plays one episode after the other, as its parent sees it."""

    def __init__(self, shared: SharedPickle | None) -> None:
        self.memory, self.playing = SharedArrays(), False
        self.process, self.pipe = spawn(work, self.memory, shared)

    def send(self, message: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # It has died, which is noticed when its answer is read.
            self.pipe.send_bytes(message)

    def release(self) -> None:
        """After its end."""
        self.process.join()
        self.pipe.close()
        self.memory.close()


class _Batch:
    """The episodes of one batch: which are to be played, by whom, and what came of them."""

    def __init__(self, workers: EpisodeWorkers, batch: bytes, seeds: Sequence[int], limits: Limits) -> None:
        self._workers, self._batch, self._seeds, self._limits = workers, batch, seeds, limits
        self._waiting, self._deaths, self._deaths_in_a_row = deque(range(len(seeds))), Counter[int](), 0
        self._busy: dict[Any, tuple[_Worker, int]] = {}
        self._failed: dict[int, Exception] = {}
        self._played: dict[int, Any] = {}

    def play(self) -> list[Any]:
        """For each episode its arrays and metrics; the error of the first one that has one."""
        for worker in self._workers.idle(len(self._seeds), self._batch):
            self._assign_next(worker)
        while self._busy:
            for pipe in wait(list(self._busy)):
                self._receive(*self._busy[pipe])
            # Episodes begin in order, so those before a failed one are played by now, or being played.
            if self._failed and all(number > min(self._failed) for _, number in self._busy.values()):
                raise self._failed[min(self._failed)]
        return [self._played[number] for number in range(len(self._seeds))]

    def _assign_next(self, worker: _Worker) -> None:
        if self._waiting and not self._failed:
            number = self._waiting.popleft()
            self._busy[worker.pipe], worker.playing = (worker, number), False
            worker.send(pickle.dumps(("play", number, self._seeds[number])))

    def _receive(self, worker: _Worker, number: int) -> None:
        try:
            kind, *content = worker.pipe.recv()
        except (EOFError, OSError):
            kind, content = "died", []
        if kind == "begun":
            worker.playing, self._deaths_in_a_row = True, 0
            return
        del self._busy[worker.pipe]
        if kind == "died":
            self._replace(worker, number)
            return
        if kind == "played":
            layouts, metrics = content
            self._played[number] = worker.memory.read(layouts), metrics
        else:
            self._failed[number] = _error(kind, *content)
        self._assign_next(worker)

    def _replace(self, worker: _Worker, number: int) -> None:
        """After the death of a worker: another one plays its episode, which does not depend on who plays it."""
        self._workers.remove(worker)
        if worker.playing:
            self._count_death(number, worker.process.exitcode)
        else:
            self._count_death_before_episode(worker.process.exitcode)
        self._waiting.appendleft(number)
        self._assign_next(self._workers.add(self._batch))

    def _count_death(self, number: int, exitcode: int | None) -> None:
        """A worker died in this episode."""
        self._deaths[number] += 1
        if self._deaths[number] < DEATHS:
            return
        name, episode = self._limits.env_name, self._limits.first_episode + number
        killed = exitcode is not None and exitcode < 0
        died = exit_reason(exitcode) if killed else f"ended with exit code {exitcode}: what in a step ends the process?"
        raise FaultyEnvironmentError(
            f"{name}: episode {episode} (seed {self._seeds[number]}) was played {DEATHS} times, and each time the "
            f"process that played it died; the last one {died}"
        )

    def _count_death_before_episode(self, exitcode: int | None) -> None:
        """A worker died before it began the episode that it was to play, which has no part in that."""
        self._deaths_in_a_row += 1
        if exitcode == UNGUARDED:
            raise ValueError(f"workers: a worker process {exit_reason(exitcode)}")
        if exitcode is not None and exitcode >= 0:  # It would end like that again.
            raise ValueError(
                f"workers: a worker process ended with exit code {exitcode} before it began an episode. Look for what "
                "ends it where the environment is imported and created, or leave workers out."
            )
        if self._deaths_in_a_row == DEATHS:
            number = self._workers.number
            fewer = f"Try fewer than {number} workers, or none" if number > 1 else "Try without workers"
            raise ValueError(
                f"workers: {DEATHS} worker processes in a row died before they began an episode, as they started or "
                f"created the environment; the last one {exit_reason(exitcode)} {fewer}: the results are the same."
            )


class _WorkerTraceback(Exception):  # noqa: N818 (not raised: the cause of an error, for tracebacks)
    """The traceback of an error in a worker."""

    def __init__(self, text: str) -> None:
        super().__init__(f'\n"""\n{text}"""')


_REMEDIES = {
    "create the environment": (
        "It must be made by something that other processes can import: an id that a module registers, or a function "
        "in a module."
    ),
    "load the policy": "Define what network= makes in a module that other processes can import, or leave workers out.",
}


def _error(kind: str, *content: Any) -> Exception:
    """What a worker reports, as an error of this process."""
    *unable_to, error, text = content
    if kind == "unable":
        (what,) = unable_to
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        error = ValueError(f"workers: a worker process could not {what}: {reason.rstrip('.')}. {_REMEDIES[what]}")
    error.__cause__ = _WorkerTraceback(text)
    return error  # type: ignore[no-any-return]


def _joined(played: Sequence[Any], limits: Limits) -> Episodes:
    """Episodes with their arrays padded to the length of the longest."""
    arrays = [dict(zip(ARRAYS, parts, strict=False)) for parts, _ in played]
    lengths = [episode["rewards"].shape[1] for episode in arrays]

    def padded(values: list[Any]) -> Any:
        array = np.zeros((len(values), max(lengths), *values[0].shape[2:]), values[0].dtype)
        for row, value in zip(array, values, strict=True):
            row[: value.shape[1]] = value[0]
        return array

    def of(name: str) -> list[Any]:
        return [episode[name] for episode in arrays]

    return Episodes(
        observations=padded(of("observations")),
        actions=padded(of("actions")),
        rewards=padded(of("rewards")),
        mask=padded([np.ones((1, length)) for length in lengths]),
        last_observations=np.concatenate(of("last_observations")),
        terminated=np.concatenate(of("terminated")),
        episode_metrics=stacked_metrics([metrics for _, metrics in played], limits),
        action_masks=padded(of("action_masks")) if "action_masks" in arrays[0] else None,
        last_action_masks=np.concatenate(of("last_action_masks")) if "action_masks" in arrays[0] else None,
    )
