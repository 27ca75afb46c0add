"""Jobs on a Ray cluster: spread over its nodes, which need not share a disk with whoever started them.

A job works in a folder of its own on its node. At each checkpoint, and at the end, what is new goes home: a desk, an
actor beside the driver, writes it into the runs' folders there. When a node dies its jobs start again elsewhere, from
what had come home. Ray's own retries are not used: they would start a job as it was first.
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

from steadyrl.checkpoint import write_whole
from steadyrl.compilation_cache import share_compilation
from steadyrl.interrupts import ended_like_ctrl_c
from steadyrl.job import Job, carry_out_telling
from steadyrl.runs import CHECKPOINT, CONFIG, ERROR, EVALUATIONS, METRICS, RESUME, resume_files
from steadyrl.workers import ONE_THREAD, PATIENCE, Outcome, described

if TYPE_CHECKING:
    from steadyrl.jobs_table import Show

MOST_STARTS = 10
"""How often a job is started whose node or process dies."""
_PAUSE = 0.5
"""Seconds between two looks at how the jobs are doing."""

Files = dict[str, bytes]
"""What there is of a run, by the files' names."""


def do_all_on_ray(jobs: Sequence[Job], show: Show, address: str | None) -> list[Outcome]:
    """See `workers.do_all`; with the cluster at `address`, or for None with a Ray of this machine alone."""
    ray = _ray()
    mine = not ray.is_initialized()
    if mine:
        _connect(ray, address)
    try:
        with ended_like_ctrl_c():  # Ray has made SIGTERM something else.
            return _Driver(ray, jobs, show).do_all()
    except ray.exceptions.RayError as error:
        raise OSError(f"Ray: {described(error)}") from error
    finally:
        if mine:
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
            # JAX warns of forks; what Ray starts becomes another program at once.
            warnings.filterwarnings("ignore", message=".*fork", category=RuntimeWarning)
            shown = bool(os.environ.get("STEADYRL_DEBUG"))
            ray.init(address=address or "local", log_to_driver=shown, logging_level="ERROR")
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
        f"--address {address}: no Ray cluster answers there, or it does not let us in. `ray start --head` starts one."
    )


class _Driver:
    """Gives out the jobs, and keeps count of them."""

    def __init__(self, ray: Any, jobs: Sequence[Job], show: Show) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._show = ray, show
        # Other processes may be in other folders than this one.
        self._jobs = [dataclasses.replace(job, folders=tuple(path.absolute() for path in job.folders)) for job in jobs]
        self._waiting = deque(range(len(jobs)))
        self._starts = [0] * len(jobs)
        self._under_way: dict[Any, int] = {}
        self._outcomes = [Outcome()] * len(jobs)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._desk = ray.remote(num_cpus=0)(_Desk).options(scheduling_strategy=here, max_concurrency=8).remote()
        surroundings = {"env_vars": ONE_THREAD | {"TF_CPP_MIN_LOG_LEVEL": "3"}}
        self._task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD", runtime_env=surroundings)(
            _carry_out_away
        )

    def do_all(self) -> list[Outcome]:
        """Until every job is over."""
        try:
            while self._waiting or self._under_way:
                self._give_out()
                ready, _ = self._ray.wait(list(self._under_way), timeout=_PAUSE)
                self._tell_news()
                for ref in ready:
                    self._over(ref)
        except KeyboardInterrupt:
            self._stop()
            raise
        return self._outcomes

    def _give_out(self) -> None:
        """As many as there are cores, and a few for those that come free: what goes along takes memory."""
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        while self._waiting and len(self._under_way) < cores + 1 + cores // 4:
            number = self._waiting.popleft()
            job = self._jobs[number]
            files = [read_files(folder) for folder in job.folders]
            self._starts[number] += 1
            self._under_way[self._task.remote(self._desk, number, job, files)] = number

    def _tell_news(self) -> None:
        for number, told in self._ray.get(self._desk.news.remote()):
            self._show(number, told)

    def _over(self, ref: Any) -> None:
        """Take note of how a job ended; one that went down with its node starts again."""
        number = self._under_way.pop(ref)
        try:
            outcome = Outcome(*self._ray.get(ref))
        except self._ray.exceptions.RayTaskError as error:  # What it does anywhere: our package is missing there, say.
            outcome = Outcome(error=described(error.cause or error))
        except self._ray.exceptions.RayError as error:
            if self._starts[number] < MOST_STARTS:
                self._waiting.appendleft(number)
                return
            outcome = Outcome(error=f"its process or node died {MOST_STARTS} times: {described(error)}")
        self._outcomes[number] = outcome
        self._show(number, outcome.error)

    def _stop(self) -> None:
        """Let jobs send home what they have learned."""
        for ref in self._under_way:
            self._ray.cancel(ref)
        with suppress(KeyboardInterrupt):
            self._ray.wait(list(self._under_way), num_returns=len(self._under_way), timeout=PATIENCE)


class _Desk:
    """Where jobs report, in a process beside the driver's."""

    def __init__(self) -> None:
        self._news: list[tuple[int, Any]] = []

    def tell(self, number: int, told: Any) -> None:
        """How far a job is."""
        self._news.append((number, told))

    def news(self) -> list[tuple[int, Any]]:
        """What was told since the last time."""
        news, self._news = self._news, []
        return news

    def keep(self, folders: Sequence[Path], files: Sequence[Files]) -> None:
        """Write what has come from a job."""
        for folder, some in zip(folders, files, strict=True):
            write_files(folder, some)
        for folder, some in zip(folders, files, strict=True):
            for path in resume_files(folder).values():
                if path.name not in some:
                    path.unlink()


def _carry_out_away(desk: Any, number: int, job: Job, files: Sequence[Files]) -> tuple[Any, str | None]:
    """A job, in a folder of this node; what it leaves goes to the desk."""
    import ray

    share_compilation()
    with tempfile.TemporaryDirectory(prefix="steadyrl-") as away:
        folders = [Path(away) / str(k) for k in range(len(job.folders))]
        for folder, some in zip(folders, files, strict=True):
            folder.mkdir()
            write_files(folder, some)

        def send() -> None:
            ray.get(desk.keep.remote(job.folders, [read_files(folder) for folder in folders]))

        def tell(told: Any) -> None:
            desk.tell.remote(number, {**told, "node": ray.get_runtime_context().get_node_id()})

        try:
            return carry_out_telling(dataclasses.replace(job, folders=tuple(folders)), tell, send), None
        except Exception as error:
            return None, _at_home(described(error), folders, job.folders)
        finally:
            send()


def read_files(folder: Path) -> Files:
    """All that there is of a run."""
    names = [CONFIG, METRICS, EVALUATIONS, ERROR, CHECKPOINT, *(path.name for path in resume_files(folder).values())]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def write_files(folder: Path, files: Files) -> None:
    """Each of them whole, and last those that say that the others are there."""
    if not files:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name.endswith(Path(RESUME).suffix)):
        write_whole(folder / name, files[name])
    if ERROR not in files:
        (folder / ERROR).unlink(missing_ok=True)


def _at_home(text: str, folders: Sequence[Path], homes: Sequence[Path]) -> str:
    """With folders of a node named as they are at home."""
    for folder, home in zip(folders, homes, strict=True):
        text = text.replace(str(folder), str(home))
    return text
