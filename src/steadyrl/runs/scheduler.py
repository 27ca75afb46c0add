"""Many runs: what remains to be trained, where it is trained, and what failed.

Work is given as cells: a cell is a `Job` with all seeds of one agent with one choice of settings in one environment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from steadyrl.base.files import lock_folder
from steadyrl.base.names import choose
from steadyrl.rollouts.simulators.choose import IN_PROGRAMS
from steadyrl.runs.job import Job, RunSpec, run_job_reporting
from steadyrl.runs.jobs_table import JobsTable, Show
from steadyrl.runs.workers import JobResult, run_all
from steadyrl.training.engines.program import VMAP_WIDTH
from steadyrl.training.loggers import logger_class
from steadyrl.training.loop import program_of
from steadyrl.training.run import pending_round
from steadyrl.training.run_files import ERROR, has_error
from steadyrl.training.warm_start import start_entry


class Failing(Protocol):
    """A job as a failure knows it."""

    @property
    def title(self) -> str:
        """The job in a few words."""
        ...

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those of its runs."""
        ...


class Failure(NamedTuple):
    """A job that failed."""

    job: Failing
    reason: str

    def __str__(self) -> str:
        logs = [folder / ERROR for folder in self.job.folders if has_error(folder)]
        return f"{self.job.title}: {self.reason}" + (f" Log: {logs[0]}" if logs else "")


def train_all(
    cells: Sequence[Job], out: Path, on: str = "local", address: str | None = None, progress: bool = True
) -> list[Failure]:
    """Train all runs that are not complete yet, "local" or on "ray"; returns those that failed.

    `address` is that of a Ray cluster; `progress` is whether to show it on standard error. The content of a run folder
    does not depend on where it was trained, nor on how often training was interrupted.
    """
    run = choose("place", on, _PLACES)
    if address is not None and run is not _run_on_ray:
        raise ValueError("--address: that is where a Ray cluster is. Add --on ray.")
    # Mistakes and missing packages are found before there is a folder.
    for name in sorted({name for cell in cells for name in cell.loggers}):
        if getattr(logger_class(name), "writes_files", False) and run is _run_on_ray:
            raise ValueError(
                f"--log {name}: on a Ray cluster jobs work in temporary folders of its nodes, and what {name} writes "
                "there is lost. Use a logger that sends metrics to a server, or read each run's metrics.jsonl."
            )
    jobs = pending_jobs(cells)
    total, remaining = (sum(len(job.runs) for job in some) for some in (cells, jobs))
    if total > remaining:
        print(f"Kept {total - remaining} finished runs in {out}; remove their folders to train them again.")
    if not jobs:
        return []
    print(f"To train: {remaining} of {total} runs.", flush=True)
    with lock_folder(out), JobsTable(jobs, total, silent=not progress) as table:
        results = run(jobs, table.show, address)
    return [Failure(job, result.error) for job, result in zip(jobs, results, strict=True) if result.error]


def pending_jobs(cells: Sequence[Job]) -> list[Job]:
    """What remains of the cells: a job for each run, or for a few that are trained in one compiled program.

    Runs share a program if they differ in seeds and in numbers such as risk_aversion alone.
    """
    groups: dict[Hashable, tuple[Job, list[list[RunSpec]]]] = {}
    for cell in cells:
        (agent,) = cell.make_agents(cell.runs[:1])
        cell.plan.check([agent])
        # Runs of one program are trained for equally long, so those that may stop early are apart.
        alike = "episodes" in cell.plan.budget and cell.plan.early_stopping is None
        together = agent.engine in IN_PROGRAMS and alike
        width = VMAP_WIDTH if together else 1
        cell = dataclasses.replace(cell, plan=dataclasses.replace(cell.plan, vmap_width=width, threads=1))
        config = cell.plan.config(agent)
        for run in cell.runs:
            rounds = pending_round(run.folder, {**config, "seed": run.seed, **start_entry(run.folder)})
            if rounds is None:
                continue
            key = _program(cell, agent, rounds) if together else run.folder
            _, calls = groups.setdefault(key, (cell, []))
            if not calls or len(calls[-1]) == width:
                calls.append([])
            calls[-1].append(run)
    return [dataclasses.replace(cell, runs=tuple(call)) for cell, calls in groups.values() for call in calls]


def _program(cell: Job, agent: Any, rounds: int) -> Hashable:
    """What runs have in common that can be trained in one program."""
    plan = dataclasses.astuple(cell.plan)
    return program_of(agent), rounds, repr(plan), cell.loggers, cell.env, repr(cell.env_options)


def _run_locally(jobs: Sequence[Job], show: Show, address: str | None) -> list[JobResult]:
    return run_all(run_job_reporting, jobs, show)


def _run_on_ray(jobs: Sequence[Job], show: Show, address: str | None) -> list[JobResult]:
    from steadyrl.runs.ray_cluster import run_all_on_ray

    return run_all_on_ray(jobs, show, address)


_PLACES: dict[str, Callable[[Sequence[Job], Show, str | None], list[JobResult]]] = {
    "local": _run_locally,
    "ray": _run_on_ray,
}
