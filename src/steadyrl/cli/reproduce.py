"""`steadyrl reproduce`: train every method of an experiment in every variant, or read what was trained, and draw it."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from steadyrl.base.shown import printable
from steadyrl.cli.arguments import (
    Flag,
    PerhapsCount,
    Progress,
    logger_names,
    named,
    names_in,
)
from steadyrl.cli.failures import exit_with_failures, explain_resuming
from steadyrl.cli.page import PAGE, show_page, write_page

if TYPE_CHECKING:
    from steadyrl.reports.results.found import Jobs
    from steadyrl.reports.results.publish import Output
    from steadyrl.runs.experiment import Experiment
    from steadyrl.runs.job import Job
    from steadyrl.runs.scheduler import Failure

ALL = "all"
"""In place of an experiment: every one."""
EVALUATION, QUICK_EVALUATION, MAX_EVALUATION = 1000, 100, 10**6
"""Episodes in which each final policy is evaluated: at full scale, at the quick one, and at most."""


@dataclass(frozen=True)
class Reproduce:
    """Train every method of one of the paper's experiments, print its table and draw its figures."""

    experiment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="EXPERIMENT")]
    """Which one, such as maze; or all, one after the other."""
    quick: Flag = False
    """A small scale that shows the shape of the result in a minute or two."""
    seeds: PerhapsCount = None
    """How many seeds; by default as in the experiment's file."""
    agents: Annotated[str | None, named("NAMES", "--agent")] = None
    """Only these methods, separated by commas, such as mg,mvo; all of them by default."""
    episodes: PerhapsCount = None
    """Episodes for each seed; by default as in the experiment's file."""
    timesteps: PerhapsCount = None
    """Steps for each seed of DQN, TD3, and MVPI on them, whose length the file gives in steps; by default as there."""
    engine: Annotated[str | None, named("NAME")] = None
    """Where episodes come from, such as gymnasium; by default as in the experiment's file."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """Folder of the results; by default results/EXPERIMENT, or results/EXPERIMENT-quick."""
    from_: Annotated[Path | None, tyro.conf.arg(name="from", metavar="PATH", help_behavior_hint="")] = None
    """Train nothing: draw a results.json.gz, or the complete runs in a folder, which are evaluated first."""
    continue_: Annotated[Path | None, tyro.conf.arg(name="continue", metavar="FILE", help_behavior_hint="")] = None
    """A results.json.gz of earlier runs, made here or elsewhere: its seeds are not trained again, and count."""
    agents_to: Annotated[Path | None, named("FOLDER")] = None
    """Write the policy of the median seed of each method into this folder too, in small files to share."""
    evaluation_episodes: PerhapsCount = None
    """Episodes in which each final policy is evaluated; 1,000 by default, and 100 with --quick."""
    log: Annotated[str, named("NAMES")] = ""
    """Loggers of every run, separated by commas: tensorboard, wandb, mlflow or jsonl."""
    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """Where to train: local, a process for each core here, or ray, a cluster."""
    address: Annotated[str | None, named("ADDRESS")] = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    open: Flag = False
    """Open the page in a browser at the end, if there is a display."""
    progress: Progress = True
    """Whether to show progress on standard error: a table in a terminal, else a line now and then; shown by default."""

    def __call__(self) -> None:
        """Run the command; status 1 if a run failed."""
        from steadyrl.reports.results.publish import Output, draw_from, results_of
        from steadyrl.runs.experiment import load_experiment

        if self.experiment == ALL:
            reproduce_all(self)
            return
        episodes = self._evaluation_episodes()
        methods = None if self.agents is None else names_in(self.agents)
        known = None if self.continue_ is None else results_of(self.experiment, self.continue_)
        if self.from_ is not None:
            self._check_from()
            output = Output(self.out, episodes, self.agents_to, self.progress, known)
            with explain_resuming():
                exit_with_failures(draw_from(self.from_, self.experiment, methods, output))
            return
        scale = {"seeds": self.seeds, "episodes": self.episodes, "timesteps": self.timesteps}
        experiment = load_experiment(self.experiment, quick=self.quick, **scale)
        out = self.out or Path("results") / (f"{self.experiment}-quick" if self.quick else self.experiment)
        if self.engine is not None:
            experiment = dataclasses.replace(experiment, engine=self.engine)
        chosen = experiment.only(methods) if methods else experiment
        with explain_resuming():
            output = Output(out, episodes, self.agents_to, self.progress, known)
            failures = reproduce(chosen, out, self.on, self.address, logger_names(self.log), self.progress, output)
        exit_with_failures(failures)
        if self.open and (out / PAGE).is_file():
            show_page(out / PAGE)

    def _evaluation_episodes(self) -> int:
        if self.evaluation_episodes is None:
            return QUICK_EVALUATION if self.quick else EVALUATION
        if not 2 <= self.evaluation_episodes <= MAX_EVALUATION:
            least = f"a number from 2 to {MAX_EVALUATION:,} is needed."
            raise ValueError(f"--evaluation-episodes {self.evaluation_episodes}: {least}")
        return self.evaluation_episodes

    def _check_from(self) -> None:
        """Refuse options of training and of the page about it."""
        options = ("seeds", "episodes", "timesteps", "engine", "log", "on", "address")
        for name in options:
            if getattr(self, name) != getattr(Reproduce, name):
                raise ValueError(f"--{name}: nothing is trained with --from. Leave one of them out.")
        if self.open:
            raise ValueError("--open: no page is written with --from. Leave one of them out.")


def reproduce(
    experiment: Experiment,
    out: Path,
    on: str = "local",
    address: str | None = None,
    loggers: Sequence[str] = (),
    progress: bool = True,
    output: Output | None = None,
) -> list[Failure]:
    """Train what is not complete yet, then write tables and figures of the results into `out`.

    `on`, `address` and `progress` are those of `train_all`. If runs fail, they are returned, and there are no tables
    and figures. `output` says how final policies are evaluated, what else is written, and which results are known.
    """
    from steadyrl.reports.results.collect import read_cells
    from steadyrl.reports.results.merge import remaining_jobs
    from steadyrl.reports.results.publish import Output, Runs, publish, study_jobs
    from steadyrl.reports.tables import write_curves
    from steadyrl.runs.scheduler import train_all

    jobs, varied = experiment.cells(out, loggers), experiment.study_experiments()
    studies = study_jobs(experiment, out, loggers)
    if output is not None and output.known is not None:
        jobs = remaining_jobs(output.known, experiment, jobs)
        for name, known in output.known.studies.items():
            if name in studies:
                studies[name] = remaining_jobs(known, varied[name], studies[name])
    if failures := train_all(_distinct([jobs, *studies.values()]), out, on, address, progress):
        return failures
    if jobs:
        write_curves(read_cells(experiment, jobs), out / "curves.json")
    output = output or Output(out, QUICK_EVALUATION, progress=progress)
    failures = publish(Runs(experiment, jobs, studies, out), output)
    if jobs:
        write_page(out, out, [experiment.env])
    return failures


def _distinct(parts: Sequence[Jobs]) -> list[Job]:
    """All jobs, each run in the first that has it: some runs are part of a study too."""
    seen: set[Path] = set()
    distinct = []
    for job in (job for jobs in parts for job in jobs.values()):
        runs = tuple(run for run in job.runs if run.folder not in seen)
        seen.update(job.folders)
        if runs:
            distinct.append(dataclasses.replace(job, runs=runs))
    return distinct


def reproduce_all(command: Reproduce) -> None:
    """Run the command for every experiment; one that fails does not stop the others. Status 1 if one failed."""
    from steadyrl.runs.experiment import names

    for option, path in (("from", command.from_), ("continue", command.continue_)):
        if path is not None:
            raise ValueError(f"--{option} {path}: name the experiment that it is of, rather than {ALL}.")
    failed = {}
    for number, name in enumerate(names(), start=1):
        print(f"Experiment {number} of {len(names())}: {name}", flush=True)
        try:
            dataclasses.replace(command, experiment=name, out=command.out and command.out / name)()
        except SystemExit:
            failed[name] = "runs failed; see above"
        except Exception as error:
            if os.environ.get("STEADYRL_DEBUG"):
                raise
            failed[name] = " ".join(f"{error}".split()) or type(error).__name__
    if failed:
        print(f"steadyrl: {len(failed)} of {len(names())} experiments failed:", file=sys.stderr)
        for name, reason in failed.items():
            print(f"  {name}: {printable(reason)}", file=sys.stderr)
        sys.exit(1)
