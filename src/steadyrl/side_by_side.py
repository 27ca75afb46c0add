"""Jobs side by side: a process for each core, pinned to it, with one thread of computing each.

Two threads of one process share a small network's products badly; two processes do not have to meet. What a job
computes does not depend on how many there are, nor on the core.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread
from typing import Any

from rich.progress import Progress, TaskID

from steadyrl.cores import usable_cores

_ONE_THREAD = dict.fromkeys(("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def do_all(do: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], progress: Progress) -> list[Any]:
    """`do(*job, progress)` of every job, in the order of the jobs; a failure is raised when the others are done.

    `do` and the jobs are pickled. The progress that `do` is given passes on what is shown there.
    """
    if not jobs:
        return []
    spawn = multiprocessing.get_context("spawn")  # A fork of a process that JAX runs in can hang.
    with spawn.Manager() as manager, _environment(_ONE_THREAD):
        told, cores = manager.Queue(), manager.Queue()
        for core in _cores()[: len(jobs)]:
            cores.put(core)
        shown = Thread(target=_show, args=(told, progress), daemon=True)
        shown.start()
        with ProcessPoolExecutor(cores.qsize(), spawn, initializer=_start, initargs=(cores,)) as pool:
            futures = [pool.submit(_do, do, job, Passed(told, number)) for number, job in enumerate(jobs)]
            try:
                _wait(futures)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            finally:
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
            raise OSError("a process ended before its run did: was there enough memory?") from error
        raise error


def _do(do: Callable[..., Any], job: tuple[Any, ...], progress: Passed) -> Any:
    return do(*job, progress)


def _start(cores: Any) -> None:
    core = cores.get()
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
