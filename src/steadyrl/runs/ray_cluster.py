"""Jobs on a Ray cluster: spread over its nodes, which need not share a disk with the machine that started them.

A job works in a temporary folder on its node. At each checkpoint, and at the end, its files are sent to an actor on the
driver's node, which writes them into the run folders there. When a node dies, its jobs are restarted elsewhere from the
files that had arrived. Ray's own retries are not used: they would start a job from scratch.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import tempfile
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyrl.base.files import write_atomic
from steadyrl.base.machine import enable_compilation_cache
from steadyrl.base.signals import interruptible
from steadyrl.runs.job import Job, run_job_reporting
from steadyrl.runs.workers import GRACE_SECONDS, ONE_THREAD, JobResult, describe_error
from steadyrl.training.run_files import (
    CHECKPOINT,
    CONFIG,
    END,
    ERROR,
    EVALUATIONS,
    METRICS,
    RESUME,
    START,
    has_error,
    remove_error,
    resume_files,
)

if TYPE_CHECKING:
    from steadyrl.runs.jobs_table import Show

MAX_STARTS = 10
"""How often a job is started if its node or process dies."""
_PAUSE = 0.5
"""Seconds between two polls of the jobs."""

Files = dict[str, bytes]
"""The files of a run, by name."""


def run_all_on_ray(jobs: Sequence[Job], show: Show, address: str | None) -> list[JobResult]:
    """See `workers.run_all`; with the cluster at `address`, or for None with a Ray of this machine alone."""
    ray = _ray()
    connected_here = not ray.is_initialized()
    if connected_here:
        _connect(ray, address)
    try:
        with interruptible():  # Ray replaces the handler of SIGTERM.
            return _Driver(ray, jobs, show).run_all()
    except ray.exceptions.RayError as error:
        raise OSError(f"Ray: {describe_error(error)}") from error
    finally:
        if connected_here:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise ModuleNotFoundError("--on ray needs Ray, which is not installed: pip install 'steadyrl[ray]'") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    if address is not None and address != "auto":
        _check_reachable(address)
    try:
        with warnings.catch_warnings():
            # JAX warns of forks; Ray's children exec another program at once.
            warnings.filterwarnings("ignore", message=".*fork", category=RuntimeWarning)
            debug = bool(os.environ.get("STEADYRL_DEBUG"))
            ray.init(address=address or "local", log_to_driver=debug, logging_level="ERROR")
    except ConnectionError:
        raise _no_cluster(address) from None


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdecimal():
        raise ValueError(f"--address {address}: write auto, or HOST:PORT of the cluster's first node.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        raise _no_cluster(address) from None


def _no_cluster(address: str | None) -> ValueError:
    return ValueError(
        f"--address {address}: no Ray cluster answers there, or it refuses us. `ray start --head` starts one."
    )


class _Driver:
    """Submits the jobs, and keeps track of them."""

    def __init__(self, ray: Any, jobs: Sequence[Job], show: Show) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._show = ray, show
        # Other processes may have other working directories.
        self._jobs = [_in_folders(job, [path.absolute() for path in job.folders]) for job in jobs]
        self._waiting = deque(range(len(jobs)))
        self._starts = [0] * len(jobs)
        self._running: dict[Any, int] = {}
        self._results = [JobResult()] * len(jobs)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._receiver = ray.remote(num_cpus=0)(_Receiver).options(scheduling_strategy=here, max_concurrency=8).remote()
        runtime_env = {"env_vars": ONE_THREAD | {"TF_CPP_MIN_LOG_LEVEL": "3"}}
        self._task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD", runtime_env=runtime_env)(
            _run_on_node
        )

    def run_all(self) -> list[JobResult]:
        """Run every job."""
        try:
            while self._waiting or self._running:
                self._submit()
                ready, _ = self._ray.wait(list(self._running), timeout=_PAUSE)
                self._show_reports()
                for ref in ready:
                    self._finish(ref)
        except KeyboardInterrupt:
            self._stop()
            raise
        return self._results

    def _submit(self) -> None:
        """Submit a few more jobs than there are cores; not all of them, because their files take memory."""
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        while self._waiting and len(self._running) < cores + 1 + cores // 4:
            number = self._waiting.popleft()
            job = self._jobs[number]
            files = [read_files(folder) for folder in job.folders]
            self._starts[number] += 1
            self._running[self._task.remote(self._receiver, number, job, files)] = number

    def _show_reports(self) -> None:
        for number, report in self._ray.get(self._receiver.take_reports.remote()):
            self._show(number, report)

    def _finish(self, ref: Any) -> None:
        """Store the result of a job; one that died with its node is submitted again."""
        number = self._running.pop(ref)
        try:
            result = JobResult(*self._ray.get(ref))
        except self._ray.exceptions.RayTaskError as error:  # It would fail on any node.
            result = JobResult(error=describe_error(error.cause or error))
        except self._ray.exceptions.RayError as error:
            if self._starts[number] < MAX_STARTS:
                self._waiting.appendleft(number)
                return
            result = JobResult(error=f"its process or node died {MAX_STARTS} times: {describe_error(error)}")
        self._results[number] = result
        self._show(number, result.error)

    def _stop(self) -> None:
        """Let jobs send their latest checkpoints."""
        for ref in self._running:
            self._ray.cancel(ref)
        with suppress(KeyboardInterrupt):
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE_SECONDS)


class _Receiver:
    """An actor on the node of the driver that jobs report to."""

    def __init__(self) -> None:
        self._reports: list[tuple[int, Any]] = []

    def report(self, number: int, progress: Any) -> None:
        """The progress of a job."""
        self._reports.append((number, progress))

    def take_reports(self) -> list[tuple[int, Any]]:
        """The reports since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def store(self, folders: Sequence[Path], files: Sequence[Files]) -> None:
        """Write the files of a job."""
        for folder, some in zip(folders, files, strict=True):
            write_files(folder, some)
        for folder, some in zip(folders, files, strict=True):
            for path in resume_files(folder).values():
                if path.name not in some:
                    path.unlink()


def _run_on_node(receiver: Any, number: int, job: Job, files: Sequence[Files]) -> tuple[Any, str | None]:
    """Run a job in a temporary folder on this node, and send its files to the receiver."""
    import ray

    enable_compilation_cache()
    with tempfile.TemporaryDirectory(prefix="steadyrl-") as temporary:
        folders = [Path(temporary) / str(k) for k in range(len(job.folders))]
        for folder, some in zip(folders, files, strict=True):
            folder.mkdir()
            write_files(folder, some)

        def send() -> None:
            ray.get(receiver.store.remote(job.folders, [read_files(folder) for folder in folders]))

        def report(progress: Any) -> None:
            receiver.report.remote(number, {**progress, "node": ray.get_runtime_context().get_node_id()})

        try:
            return run_job_reporting(_in_folders(job, folders), report, send), None
        except Exception as error:
            return None, _with_driver_folders(describe_error(error), folders, job.folders)
        finally:
            send()


def read_files(folder: Path) -> Files:
    """The files of a run."""
    names = [
        CONFIG,
        METRICS,
        EVALUATIONS,
        CHECKPOINT,
        START,
        END,
        *(path.name for path in resume_files(folder).values()),
    ]
    names += [ERROR] if has_error(folder) else []
    names += [path.name for path in folder.glob("*_run_id")]  # What tracking services call the run.
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def write_files(folder: Path, files: Files) -> None:
    """Write each atomically; last the checkpoints, which imply that the other files are there."""
    if not files:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name.endswith(Path(RESUME).suffix)):
        write_atomic(folder / name, files[name])
    if ERROR not in files:
        remove_error(folder)


def _in_folders(job: Job, folders: Sequence[Path]) -> Job:
    """The job with its runs in other folders."""
    runs = tuple(run._replace(folder=folder) for run, folder in zip(job.runs, folders, strict=True))
    return dataclasses.replace(job, runs=runs)


def _with_driver_folders(text: str, folders: Sequence[Path], originals: Sequence[Path]) -> str:
    """A text that names folders of a node, with those of the driver instead."""
    for folder, original in zip(folders, originals, strict=True):
        text = text.replace(str(folder), str(original))
    return text
