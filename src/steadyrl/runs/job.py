"""A job: runs that one process trains, from their folders to their folders.

Mostly a single run. Where environment and agent fit into one compiled program, several runs are trained together in it
and are one job. The result of a job depends on its fields, not on where it is run, nor on how often it is interrupted.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from steadyrl.agents import AGENTS, Agent
from steadyrl.envs.resolve import resolve
from steadyrl.runs.evaluation_curve import EvaluationCurve, StoppingCurve
from steadyrl.training.loggers import RunInfo, open_loggers
from steadyrl.training.loop import Listener
from steadyrl.training.progress import ProgressReporter
from steadyrl.training.run import Plan, train_runs
from steadyrl.training.run_folder import Run
from steadyrl.training.warm_start import apply_start


class RunSpec(NamedTuple):
    """One run of a job."""

    seed: int
    folder: Path
    settings: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    """Of the agent; runs of one job differ in numbers alone."""
    title: str = ""
    """What tables call it, without its seed."""


@dataclass(frozen=True)
class Job:
    """What to train, for how long, and where the results are written."""

    env: str
    agent: str
    runs: tuple[RunSpec, ...]
    plan: Plan
    env_options: dict[str, Any] = field(default_factory=dict)
    engine: str = "auto"
    loggers: tuple[str, ...] = ()
    """Names of loggers; see `training.loggers`."""
    workers: int | str = 0
    """How many processes play training episodes, or "auto"; see `Agent`. Not for jobs that are in such processes."""

    @classmethod
    def cell(
        cls,
        *,
        env: str,
        agent: str,
        settings: dict[str, Any],
        seeds: Sequence[int],
        folder: Path,
        title: str,
        plan: Plan,
        **options: Any,
    ) -> Job:
        """All seeds of one agent with one choice of settings in one environment; `options` are further fields."""
        runs = tuple(RunSpec(seed, folder / f"seed{seed}", settings, title) for seed in seeds)
        return cls(env=env, agent=agent, runs=runs, plan=plan, **options)

    @property
    def title(self) -> str:
        """The runs in a few words."""
        titles: dict[str, list[str]] = {}
        for run in self.runs:
            titles.setdefault(run.title, []).append(str(run.seed))
        return "; ".join(f"{title} seed{'s' * (len(seeds) > 1)} {','.join(seeds)}" for title, seeds in titles.items())

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those of its runs."""
        return tuple(run.folder for run in self.runs)

    def make_agents(self, runs: Sequence[RunSpec] | None = None) -> list[Agent]:
        """Untrained agents of its runs, or of some of them."""
        # A function rather than an environment: engines that play many at once can make more of it.
        make = partial(resolve, self.env, **self.env_options)
        kind = AGENTS[self.agent]
        agents = []
        for run in runs or self.runs:
            agents.append(kind(make, seed=run.seed, engine=self.engine, workers=self.workers, **run.settings))
            apply_start(agents[-1], run.folder)
        return agents


def run_job(
    job: Job,
    listeners: Callable[[Sequence[Any], Sequence[Run]], Sequence[Listener]] = lambda agents, runs: (),
    at_checkpoint: Callable[[], None] | None = None,
) -> list[Agent]:
    """Train what is not complete yet, from the last checkpoints, and return its agents; see `train_runs`."""
    names = {run.folder.resolve(): f"{run.title} seed{run.seed}" for run in job.runs}
    with ExitStack() as stack:

        def all_listeners(agents: Sequence[Any], runs: Sequence[Run]) -> list[Listener]:
            evaluating = _evaluating(job.plan, runs)
            # Names come from the job: on a cluster folders are temporary ones.
            infos = [RunInfo(names[run.folder.resolve()], run.folder, job.plan.config(run.agent)) for run in runs]
            logging = stack.enter_context(open_loggers(job.loggers, infos, agents))
            return [*evaluating, *listeners(agents, runs), *logging]

        trained: list[Any] = train_runs(
            job.make_agents(), job.folders, job.plan, all_listeners, at_checkpoint=at_checkpoint
        )
        return trained


def _evaluating(plan: Plan, runs: Sequence[Run]) -> list[Listener]:
    """What evaluates the policies during training."""
    if plan.evaluations is None:
        return []
    if plan.early_stopping is not None:
        return [StoppingCurve(runs, **plan.evaluations, rule=plan.early_stopping)]
    return [EvaluationCurve(runs, **plan.evaluations)]


def run_job_reporting(job: Job, report: Callable[[Any], None], at_checkpoint: Callable[[], None] | None = None) -> int:
    """`run_job`, reporting progress as plain data; returns how many runs were trained."""
    unit, total = job.plan.unit, job.plan.total
    return len(run_job(job, lambda agents, runs: [ProgressReporter(report, unit, total, agents)], at_checkpoint))


def command_line() -> str:
    """What the user typed."""
    return shlex.join(["steadyrl", *sys.argv[1:]])
