"""Many runs: what is left to do of them, where it is done, and what became of it.

What there is to do comes in cells. A cell is a job with all seeds of one agent with one choice of settings in one
environment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from steadyrl.engines import CompiledEngine
from steadyrl.folder_lock import locked
from steadyrl.job import Job, carry_out_telling, check_budget
from steadyrl.jobs_table import JobsTable, Show
from steadyrl.naming import choose
from steadyrl.runs import ERROR
from steadyrl.workers import Outcome, do_all


class Failure(NamedTuple):
    """A job that did not come to its end."""

    job: Job
    reason: str

    def __str__(self) -> str:
        logs = [folder / ERROR for folder in self.job.folders if (folder / ERROR).exists()]
        return f"{self.job.title}: {self.reason}" + (f" Log: {logs[0]}" if logs else "")


def train_all(cells: Sequence[Job], out: Path, on: str = "local", address: str | None = None) -> list[Failure]:
    """Train all runs that are not complete yet, "local" or on "ray"; those that failed.

    `address` is that of a Ray cluster. What is in a run's folder at the end does not depend on where it was trained,
    nor on how often that was broken off.
    """
    do = choose("place", on, _PLACES)
    if address is not None and do is not _on_ray:
        raise ValueError("--address: that is where a Ray cluster is. Add --on ray.")
    cells = [dataclasses.replace(cell, threads=1) for cell in cells]
    jobs = [job for cell in cells for job in left_of(cell)]  # Mistakes are found before there is a folder.
    runs, left = (sum(len(job.seeds) for job in some) for some in (cells, jobs))
    if runs > left:
        print(f"Kept {runs - left} finished runs in {out}; remove their folders to train them anew.")
    if not jobs:
        return []
    print(f"To train: {left} of {runs} runs.", flush=True)
    with locked(out), JobsTable(jobs, runs) as table:
        outcomes = do(jobs, table.show, address)
    return [Failure(job, outcome.error) for job, outcome in zip(jobs, outcomes, strict=True) if outcome.error]


def left_of(cell: Job) -> list[Job]:
    """What is left to do of a cell: a job for each run, or for a few seeds that learn in one compiled program."""
    (agent,) = cell.only(cell.seeds[:1]).agents()
    check_budget(cell, [agent])
    together = agent.engine == "compiled" and "episodes" in cell.budget
    lanes = CompiledEngine.LANES if together else 1
    cell = dataclasses.replace(cell, lanes=lanes)
    groups: dict[int, list[int]] = {}
    for seed in cell.seeds:
        groups.setdefault(seed // lanes, []).append(seed)
    jobs = [job for seeds in groups.values() for job in cell.only(seeds).left(agent)]
    return [dataclasses.replace(job, title=f"{job.title} {_seeds(job.seeds)}") for job in jobs]


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {','.join(map(str, seeds))}"


def _here(jobs: Sequence[Job], show: Show, address: str | None) -> list[Outcome]:
    return do_all(carry_out_telling, jobs, show)


def _on_ray(jobs: Sequence[Job], show: Show, address: str | None) -> list[Outcome]:
    from steadyrl.ray_cluster import do_all_on_ray

    return do_all_on_ray(jobs, show, address)


_PLACES: dict[str, Callable[[Sequence[Job], Show, str | None], list[Outcome]]] = {"local": _here, "ray": _on_ray}
