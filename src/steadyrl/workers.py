"""Jobs side by side on this machine: a process for each core, pinned to it, with one thread of computing each.

Two threads of one process share a small network's products badly; two processes do not have to meet. What a job
computes does not depend on how many there are, nor on the core.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from steadyrl.compilation_cache import shared_compilation
from steadyrl.cores import usable_cores
from steadyrl.interrupts import BrokenOffError, ended_like_ctrl_c

ONE_THREAD = dict.fromkeys(("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""For the environment of a process that computes with one thread."""
PATIENCE = 60
"""Seconds that processes have to save what they learned when all is stopped."""

_STOPPED = 130

Tell = Callable[[Any], None]
"""Tells the one who gave out the jobs how it goes."""


class Outcome(NamedTuple):
    """What became of a job."""

    value: Any = None
    error: str | None = None
    """Why it failed, in one line."""


def do_all(do: Callable[[Any, Tell], Any], jobs: Sequence[Any], show: Callable[[int, Any], None]) -> list[Outcome]:
    """`do(job, tell)` of every job, in the order of the jobs; the others go on when one fails.

    What a job tells is shown by `show(number of the job, told)`; at its end that is None, or why it failed, as text.
    `do` and the jobs are pickled.
    Ctrl-C is passed on to the jobs, so that they can save, and raised when they have.
    """
    outcomes: list[Outcome] = [Outcome()] * len(jobs)
    left, busy = deque(enumerate(jobs)), dict[Connection, _Worker]()
    idle_cores = deque(_cores()[: len(jobs)])
    with _environment(ONE_THREAD | shared_compilation()):
        try:
            while left or busy:
                while left and idle_cores:
                    worker = _Worker(idle_cores.popleft())
                    busy[worker.pipe] = worker
                    worker.give(do, *left.popleft())
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    outcome = worker.heard(show)
                    if outcome is None:
                        continue
                    outcomes[worker.number] = outcome
                    show(worker.number, outcome.error)
                    if left and worker.process.is_alive():
                        worker.give(do, *left.popleft())
                    else:
                        idle_cores.append(worker.core)
                        del busy[worker.pipe]
                        worker.end()
        finally:
            for worker in busy.values():
                worker.process.terminate()
            for worker in busy.values():
                worker.stop()
    return outcomes


class _Worker:
    """A process that does one job after the other, as its owner sees it."""

    def __init__(self, core: int | None) -> None:
        spawn = multiprocessing.get_context("spawn")  # A fork of a process that JAX runs in can hang.
        self.core, self.number = core, -1
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_work, args=(theirs, core), daemon=True)
        with _ctrl_c_held_back():  # And so it stays in the process: whoever started it ends it.
            self.process.start()
        theirs.close()

    def give(self, do: Callable[..., Any], number: int, job: Any) -> None:
        self.number = number
        with suppress(BrokenPipeError):  # It has died, which `heard` will tell.
            self.pipe.send((do, job))

    def heard(self, show: Callable[[int, Any], None]) -> Outcome | None:
        """Take note of what it says; what became of its job, if that was it."""
        try:
            kind, said = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Outcome(error=_death(self.process.exitcode))
        if kind == "told":
            show(self.number, said)
            return None
        return Outcome(value=said) if kind == "done" else Outcome(error=said)

    def end(self) -> None:
        """When there is nothing more to do."""
        self.pipe.close()
        self.process.join()

    def stop(self) -> None:
        """When it was terminated in the middle of a job: once it has saved what it learned."""
        self.process.join(PATIENCE)
        self.process.kill()
        self.end()


def _death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"its process was ended from outside ({signal.Signals(-exitcode).name}): is there enough memory?"
    if exitcode == _STOPPED:
        return "its process was asked to end from outside."
    return "its process ended: if this is a script, put the call under `if __name__ == '__main__':`."


def _work(pipe: Connection, core: int | None) -> None:
    """Do the jobs that come through the pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    given: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, given), daemon=True).start()
    with ended_like_ctrl_c():
        while True:
            do, job = given.get()
            try:
                pipe.send(("done", do(job, lambda said: pipe.send(("told", said)))))
            except KeyboardInterrupt:
                os._exit(_STOPPED)
            except Exception as error:
                if os.environ.get("STEADYRL_DEBUG"):
                    traceback.print_exc()
                pipe.send(("failed", described(error)))


def _receive(pipe: Connection, given: queue.SimpleQueue[Any]) -> None:
    """Pass on what comes; without its owner, who would come back to the same folders, a process must not go on."""
    while True:
        try:
            given.put(pipe.recv())
        except EOFError:
            os._exit(1)
        except Exception:  # What was given cannot be had here.
            traceback.print_exc()
            os._exit(1)


def described(error: Exception) -> str:
    """An error as one line, with its kind if that is not one that speaks for itself."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError | OSError | BrokenOffError) else f"{type(error).__name__}: {text}"


def _cores() -> list[int | None]:
    """The cores to use, as far as the system numbers them."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    number = usable_cores()
    return [*mine, *[None] * number][:number]


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """For processes that are started within."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
