"""Jobs side by side on this machine: a process for each core, pinned to it, with one compute thread each.

Two threads of one process share the products of a small network badly; two processes need not synchronize. The result
of a job does not depend on how many there are, nor on the core.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from steadyrl.base.machine import compilation_cache_env, usable_cores
from steadyrl.base.processes import end_at_once, exit_reason, received, spawn
from steadyrl.base.signals import TrainingInterruptedError, check_interrupted, defer_signals, interruptible

ONE_THREAD = dict.fromkeys(("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""For the environment of a process that computes with one thread."""
GRACE_SECONDS = 60
"""How long processes have to save their runs when they are stopped."""

_STOPPED = 130

Report = Callable[[Any], None]
"""Sends progress to the process that started the jobs."""


class JobResult(NamedTuple):
    """The result of a job."""

    value: Any = None
    error: str | None = None
    """Why it failed, in one line."""


def run_all(
    run: Callable[[Any, Report], Any], jobs: Sequence[Any], show: Callable[[int, Any], None]
) -> list[JobResult]:
    """`run(job, report)` for every job, in order; the others continue when one fails. `run` and jobs are pickled.

    What a job reports is passed to `show(number of the job, report)`; at its end that is None, or the error as text.
    Ctrl-C is passed on to the jobs, so that they can save, and raised when they have.
    """
    results: list[JobResult] = [JobResult()] * len(jobs)
    waiting, busy = deque(enumerate(jobs)), dict[Connection, _Worker]()
    idle_cores = deque(_cores()[: len(jobs)])
    with _environment(ONE_THREAD | compilation_cache_env()):
        try:
            while waiting or busy:
                while waiting and idle_cores:
                    with defer_signals():  # A process that is started is known here, and has all that it reads first.
                        worker = _Worker(idle_cores.popleft())
                        busy[worker.pipe] = worker
                        worker.assign(run, *waiting.popleft())
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    result = worker.receive(show)
                    if result is None:
                        continue
                    results[worker.number] = result
                    show(worker.number, result.error)
                    if waiting and worker.process.is_alive():
                        with defer_signals():
                            worker.assign(run, *waiting.popleft())
                    else:
                        idle_cores.append(worker.core)
                        del busy[worker.pipe]
                        worker.end()
        finally:
            for worker in busy.values():
                worker.process.terminate()
            for worker in busy.values():
                worker.stop()
    return results


class _Worker:
    """A process that runs one job after the other, as its parent sees it."""

    def __init__(self, core: int | None) -> None:
        self.core, self.number = core, -1
        self.process, self.pipe = spawn(_work, core)

    def assign(self, run: Callable[..., Any], number: int, job: Any) -> None:
        self.number = number
        with suppress(BrokenPipeError):  # It has died, which `receive` reports.
            self.pipe.send((run, job))

    def receive(self, show: Callable[[int, Any], None]) -> JobResult | None:
        """Handle one message; returns the result of its job, if that was the message."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return JobResult(error=_exit_reason(self.process.exitcode))
        if kind == "report":
            show(self.number, content)
            return None
        return JobResult(value=content) if kind == "done" else JobResult(error=content)

    def end(self) -> None:
        """When there are no more jobs."""
        self.pipe.close()
        self.process.join()

    def stop(self) -> None:
        """After it was terminated in the middle of a job: wait until it has saved its runs."""
        self.process.join(GRACE_SECONDS)
        self.process.kill()
        self.end()


def _exit_reason(exitcode: int | None) -> str:
    return (
        "its process was terminated from outside." if exitcode == _STOPPED else f"its process {exit_reason(exitcode)}"
    )


def _work(pipe: Connection, core: int | None) -> None:
    """Run the jobs that come through the pipe, until it is closed or the process is terminated; nothing is printed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    # Without its parent, which may be restarted in the same folders, a process must end.
    assigned = received(pipe, end_at_once)
    try:
        with interruptible():
            while True:
                check_interrupted()
                _run(pipe, *_unpickled(assigned.get()))
    except KeyboardInterrupt:
        os._exit(_STOPPED)


def _run(pipe: Connection, run: Callable[..., Any], job: Any) -> None:
    """Run a job, and send its result."""
    try:
        _send(pipe, ("done", run(job, lambda report: _send(pipe, ("report", report)))))
    except Exception as error:
        check_interrupted()
        if os.environ.get("STEADYRL_DEBUG"):
            traceback.print_exc()
        _send(pipe, ("failed", describe_error(error)))


def _send(pipe: Connection, message: Any) -> None:
    try:
        pipe.send(message)
    except OSError:  # There is no parent any more.
        os._exit(1)


def _unpickled(message: bytes) -> Any:
    try:
        with defer_signals():  # An exception in the middle of the import of JAX can crash Python.
            return pickle.loads(message)
    except Exception:  # The job cannot be unpickled here.
        traceback.print_exc()
        os._exit(1)


def describe_error(error: Exception) -> str:
    """An error as one line; with its type, unless it is one whose message is written for users."""
    text = " ".join(str(error).split())
    return (
        text
        if isinstance(error, ValueError | OSError | TrainingInterruptedError)
        else f"{type(error).__name__}: {text}"
    )


def _cores() -> list[int | None]:
    """The cores to use; None where the system does not number them."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    number = usable_cores()
    return [*mine, *[None] * number][:number]


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started within."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
