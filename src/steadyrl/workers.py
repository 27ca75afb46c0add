"""Jobs side by side: a process for each core, pinned to it, with one thread of computing each.

Two threads of one process share a small network's products badly; two processes do not have to meet. What a job
computes does not depend on how many there are, nor on the core.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from rich.progress import Progress, TaskID

from steadyrl.cores import usable_cores

_ONE_THREAD = dict.fromkeys(("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def do_all(do: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], progress: Progress) -> list[Any]:
    """`do(*job, progress)` of every job, in the order of the jobs; a failure is raised when the others are done.

    `do` and the jobs are pickled. The progress that `do` is given passes on what is shown there.
    """
    cores = _cores()
    if not jobs or len(cores) == 1:
        return [do(*job, progress) for job in jobs]
    spawn = multiprocessing.get_context("spawn")  # A fork of a process that JAX runs in can hang.
    try:
        manager = spawn.Manager()
    except EOFError:
        raise ValueError("processes cannot start from here: put the call under `if __name__ == '__main__':`.") from None
    with manager, _environment(_ONE_THREAD):
        told, free = manager.Queue(), manager.Queue()
        for core in cores[: len(jobs)]:
            free.put(core)
        shown = Thread(target=_show, args=(told, progress), daemon=True)
        shown.start()
        with ProcessPoolExecutor(free.qsize(), spawn, initializer=_start, initargs=(free,)) as pool:
            futures = [pool.submit(_do, do, job, Passed(told, number)) for number, job in enumerate(jobs)]
            try:
                _wait(futures)
            except KeyboardInterrupt:
                for process in list(pool._processes.values()):  # They would go on until their jobs are done.
                    process.terminate()
                raise
            finally:
                with suppress(OSError):
                    told.put(None)
                shown.join()
    return [future.result() for future in futures]


class Passed:
    """What a job shows of its progress, passed on to the process that has the terminal; see rich's `Progress`."""

    def __init__(self, told: Any, number: int) -> None:
        self._told, self._number = told, number

    def add_task(self, description: str, **fields: Any) -> TaskID:
        """See rich; a job has one task."""
        self._told.put((self._number, "add_task", {"description": description, **fields}))
        return TaskID(self._number)

    def start_task(self, task: TaskID) -> None:
        """See rich."""
        self._told.put((self._number, "start_task", {}))

    def update(self, task: TaskID, **fields: Any) -> None:
        """See rich."""
        self._told.put((self._number, "update", fields))


def _show(told: Any, progress: Progress) -> None:
    tasks: dict[int, TaskID] = {}
    while (message := told.get()) is not None:
        number, method, fields = message
        if method == "add_task":
            tasks[number] = progress.add_task(**fields)
        else:
            getattr(progress, method)(tasks[number], **fields)


def _wait(futures: list[Future[Any]]) -> None:
    """Until all are done, those that fail and those that do not; then the first failure, if there was one."""
    for _ in as_completed(futures):
        pass
    failures = [error for future in futures if (error := future.exception()) is not None]
    for error in failures[:1]:
        if isinstance(error, BrokenProcessPool):
            raise OSError(
                "a process was ended from outside, and with it the others: is there enough memory?"
            ) from error
        raise error


def _do(do: Callable[..., Any], job: tuple[Any, ...], progress: Passed) -> Any:
    try:
        return do(*job, progress)
    except Exception as error:
        if not _travels(error):
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        raise


def _travels(error: Exception) -> bool:
    """Whether it can be pickled and be made again, as it must to be raised in another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


def _start(free: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Whoever started the processes ends them.
    core = free.get()
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _cores() -> list[int | None]:
    """The cores to use, as far as the system numbers them."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    number = usable_cores()
    return [*mine, *[None] * number][:number]


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
