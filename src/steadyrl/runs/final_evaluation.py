"""Evaluation of the final policies of many runs: side by side, and stored in the run folders."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import load
from steadyrl.base.files import lock_folder, write_atomic
from steadyrl.base.parsing import parse_json
from steadyrl.base.signals import check_interrupted
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation.play import Played, play_policy
from steadyrl.evaluation.risk_report import RiskReport
from steadyrl.runs.job import Job, RunSpec
from steadyrl.runs.jobs_table import JobsTable
from steadyrl.runs.scheduler import Failure
from steadyrl.runs.workers import describe_error, run_all
from steadyrl.training.run_files import CHECKPOINT, FINAL_EVALUATION, GREEDY_EVALUATION
from steadyrl.training.run_folder import is_complete

EPISODES = 200
"""Evaluation episodes by default."""


@dataclass(frozen=True)
class EvaluationJob:
    """The final policies of some runs of a cell, to be evaluated in the environment that they were trained in."""

    cell: Job
    runs: tuple[RunSpec, ...]
    episodes: int
    deterministic: bool = False
    """Whether to take the most likely actions."""

    @property
    def title(self) -> str:
        """The runs in a few words."""
        return f"{dataclasses.replace(self.cell, runs=self.runs).title}: evaluation"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those of its runs."""
        return tuple(run.folder for run in self.runs)


@dataclass(frozen=True)
class Evaluated:
    """The evaluation episodes of a final policy."""

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    episode_metrics: dict[str, NDArray[np.float64]]
    gamma: float
    seed: int

    def report(self) -> RiskReport:
        """Mean and risk with intervals."""
        return RiskReport.from_returns(
            self.returns, self.discounted_returns, self.gamma, self.episode_metrics, self.seed
        )


def evaluate_all(
    cells: Sequence[Job],
    out: Path,
    episodes: int = EPISODES,
    deterministic: bool = False,
    progress: bool = True,
    lock: bool = True,
) -> list[Failure]:
    """Evaluate all complete runs of the cells that are not evaluated yet, a process for each core; returns failures.

    Without `lock`, another process may be training other runs in the folder.
    """
    complete = sum(is_complete(run.folder) for cell in cells for run in cell.runs)
    jobs = []
    for cell in cells:
        done = [run for run in cell.runs if is_complete(run.folder)]
        missing = [run for run in done if read_evaluation(run.folder, episodes, deterministic) is None]
        jobs += [EvaluationJob(cell, tuple(missing), episodes, deterministic)] if missing else []
    if not jobs:
        return []
    policies = sum(len(job.runs) for job in jobs)
    how = " with the most likely actions" * deterministic
    print(f"To evaluate: {policies} of {complete} policies, {episodes:,} episodes each{how}.", flush=True)
    with lock_folder(out) if lock else nullcontext(), JobsTable(jobs, policies, silent=not progress) as table:
        results = run_all(evaluate_job, jobs, table.show)
    return [Failure(job, result.error) for job, result in zip(jobs, results, strict=True) if result.error]


def evaluate_job(job: EvaluationJob, report: Callable[[Any], None] = lambda progress: None) -> None:
    """Evaluate each policy; the others are evaluated too if one fails."""
    errors = []
    for run in job.runs:
        try:
            _evaluate_run(job, run)
        except Exception as error:  # Of an environment that anybody may have written.
            check_interrupted()
            errors.append(f"seed {run.seed}: {describe_error(error)}")
    if errors:
        raise ValueError(" ".join(errors))


def _evaluate_run(job: EvaluationJob, run: RunSpec) -> None:
    """Play the episodes, and store them in the run folder."""
    checkpoint, make_env = run.folder / CHECKPOINT, partial(resolve, job.cell.env, **job.cell.env_options)
    agent, env = load(checkpoint, make_env), make_env()
    try:
        # The seed is the run's, on the streams of evaluation: policies of the same seed meet the same episodes.
        played = play_policy(agent, env, job.episodes, run.seed, job.deterministic, agent.gamma)
    finally:
        env.close()
    if not np.isfinite(played.returns).all():
        raise ValueError("an evaluation episode has a return that is not finite.")
    store_evaluation(run.folder, played, agent.gamma, run.seed, job.deterministic)


def store_evaluation(folder: Path, played: Played, gamma: float, seed: int, deterministic: bool = False) -> None:
    """Write the evaluation episodes of a run's final policy into its folder."""
    content = {
        "checkpoint": _digest(folder / CHECKPOINT),
        "deterministic": deterministic,
        "seed": seed,
        "gamma": gamma,
        "returns": played.returns.tolist(),
        "discounted_returns": played.discounted_returns.tolist(),
        "episode_metrics": {name: np.asarray(values, float).tolist() for name, values in played.metrics.items()},
    }
    write_atomic(_file(folder, deterministic), json.dumps(content).encode())


def read_evaluation(folder: Path, episodes: int, deterministic: bool = False) -> Evaluated | None:
    """The first so many evaluation episodes of the run's final policy; None if they are yet to be played."""
    try:
        found = stored_evaluation(folder, deterministic)
    except ValueError as error:
        print(f"{str(error).replace(' is damaged:', ' is damaged and is written anew:', 1)}", file=sys.stderr)
        return None
    if found is None or len(found.returns) < episodes:
        return None
    metrics = {name: values[:episodes] for name, values in found.episode_metrics.items()}
    returns, discounted = found.returns[:episodes], found.discounted_returns[:episodes]
    return Evaluated(returns, discounted, metrics, found.gamma, found.seed)


def stored_evaluation(folder: Path, deterministic: bool = False) -> Evaluated | None:
    """All evaluation episodes of the run's final policy; None if there are none, a ValueError if the file is damaged.

    Those of another policy, such as the one before training was resumed, are none.
    """
    path = _file(folder, deterministic)
    if not path.is_file() or not (folder / CHECKPOINT).is_file():
        return None
    try:
        found = parse_json(path.read_bytes())
        if found["checkpoint"] != _digest(folder / CHECKPOINT) or found["deterministic"] is not deterministic:
            return None
        columns = [found["returns"], found["discounted_returns"], *found["episode_metrics"].values()]
        arrays = [np.asarray(column, np.float64) for column in columns]
        shape = (len(arrays[0]),)
        if not len(arrays[0]) or any(array.shape != shape or not np.isfinite(array).all() for array in arrays):
            raise ValueError("returns are missing, or are not finite numbers")
        metrics = dict(zip(found["episode_metrics"], arrays[2:], strict=True))
        return Evaluated(arrays[0], arrays[1], metrics, float(found["gamma"]), int(found["seed"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def _file(folder: Path, deterministic: bool) -> Path:
    return folder / (GREEDY_EVALUATION if deterministic else FINAL_EVALUATION)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
