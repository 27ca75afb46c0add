"""From runs, or from a results file, to the results file and everything that is drawn from it. Nothing is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from steadyrl.base.shown import printable
from steadyrl.reports.results.collect import collect, collect_study, greedy_episodes
from steadyrl.reports.results.draw import draw_results
from steadyrl.reports.results.file import RESULTS, read_results, write_results
from steadyrl.reports.results.found import Jobs, complete_jobs, found_jobs, with_found_seeds
from steadyrl.reports.results.merge import merge
from steadyrl.reports.results.results import Results
from steadyrl.reports.results.share import share_agents
from steadyrl.runs.experiment import LAMBDA_CURVES, SENSITIVITY, Experiment, load_experiment
from steadyrl.runs.final_evaluation import evaluate_all
from steadyrl.runs.job import Job
from steadyrl.runs.scheduler import Failure


class Runs(NamedTuple):
    """The runs of an experiment, complete or not."""

    experiment: Experiment
    jobs: Jobs
    studies: dict[str, Jobs]
    """Of each study."""
    folder: Path
    in_training: bool = False
    """Whether another process may be training some of them."""

    @classmethod
    def found(cls, experiment: Experiment, folder: Path) -> Runs:
        """Those that are in a folder; of a study with no other runs than the experiment's own, none."""
        studies = {
            name: with_found_seeds(jobs) if study_folder(folder, name).is_dir() else {}
            for name, jobs in study_jobs(experiment, folder).items()
        }
        return cls(experiment, found_jobs(experiment, folder), studies, folder, in_training=True)


class Output(NamedTuple):
    """Where results go, and how final policies are evaluated for them."""

    folder: Path | None
    """Of the results file, tables and figures; by default where the runs are."""
    episodes: int
    """In which each final policy is evaluated, unless it was already."""
    agents_to: Path | None = None
    """Folder of agents to share, if they are to be written."""
    progress: bool = True
    known: Results | None = None
    """Results of other seeds or methods, which the new ones are combined with."""


_FOLDERS = {SENSITIVITY: "sweep", LAMBDA_CURVES: "lambda-curves"}
"""Study -> the end of the name of its folder."""


def study_folder(out: Path, study: str) -> Path:
    """Where the runs of a study are: beside the others, also if their folder is given as "."."""
    out = out if out.name not in ("", "..") else out.resolve()
    return out.with_name(f"{out.name}-{_FOLDERS[study]}")


def study_jobs(experiment: Experiment, out: Path, loggers: Sequence[str] = ()) -> dict[str, Jobs]:
    """Study -> its cells. One that the experiment itself has, trained alike, has the runs of that."""
    own = experiment.cells(out, loggers)
    studies = {}
    for name, varied in experiment.study_experiments().items():
        cells = varied.cells(study_folder(out, name), loggers)
        studies[name] = {
            (variant, method): _with_runs_of(own[variant, method.partition("=")[0]], job)
            for (variant, method), job in cells.items()
        }
    return studies


def _with_runs_of(own: Job, job: Job) -> Job:
    """A cell of a study with the runs of the experiment itself, if these are trained alike."""
    alike = [(run.seed, run.settings) for run in own.runs] == [(run.seed, run.settings) for run in job.runs]
    return dataclasses.replace(job, runs=own.runs) if alike and own.plan == job.plan else job


def sweep_folder(out: Path) -> Path:
    """Where the runs of the sensitivity study are."""
    return study_folder(out, SENSITIVITY)


def draw_from(path: Path, name: str, methods: Sequence[str] | None, output: Output) -> list[Failure]:
    """Draw a results file of the experiment `name`, or the complete runs in a folder, of some methods or all.

    Returns the evaluations that failed.
    """
    experiment = load_experiment(name)
    if path.is_dir():
        runs = Runs.found(experiment.only(methods) if methods else experiment, path)
        return publish(runs, output)
    for option, value in (("agents", methods), ("agents-to", output.agents_to), ("continue", output.known)):
        if value:
            raise ValueError(f"--{option}: that takes the folder of the runs, and {path} is none. Leave it out.")
    draw_results(results_of(name, path), output.folder or Path("results") / f"{name}-redrawn")
    return []


def results_of(name: str, path: Path) -> Results:
    """Those in a results file, which has to be of the experiment `name`."""
    results = read_results(path)
    if results.experiment.name != name:
        other = results.experiment.name
        raise ValueError(f"{path} has the results of {other}, not of {name}: use `steadyrl reproduce {other}`.")
    return results


def _collected(runs: Runs, complete: Jobs, studied: dict[str, Jobs], output: Output) -> Results:
    """The results of complete runs, combined with those that were known before."""
    known, results = output.known, output.known
    if complete or known is None:
        new = collect(runs.experiment, complete, output.episodes)
        results = new if known is None else merge(known, new)
    assert results is not None
    varied = runs.experiment.study_experiments()
    for name, jobs in studied.items():
        if jobs:
            study, before = collect_study(name, varied[name], jobs), results.studies.get(name)
            study = study if before is None else merge(before, study)
            results = _with_study(results, name, runs.experiment, study)
    return results


def _with_study(results: Results, name: str, experiment: Experiment, study: Results) -> Results:
    """Results with those of a study, if one of its methods has a complete run in the experiment too."""
    described = experiment.studies[name]
    if not any(method.name in described.values for method in results.experiment.methods):
        print(f"The study {name} is left out: none of its methods has a complete run in the experiment itself.")
        return results
    return results.with_study(name, described, study)


def publish(runs: Runs, output: Output) -> list[Failure]:
    """Evaluate complete runs, write their results file, and draw it; returns the evaluations that failed."""
    out, episodes = output.folder or runs.folder, output.episodes
    complete, notes = complete_jobs(runs.experiment, runs.jobs)
    varied, studied = runs.experiment.study_experiments(), {}
    for name, jobs in runs.studies.items():
        studied[name], notes_of_study = complete_jobs(varied[name], jobs)
        notes += notes_of_study
    for note in notes:
        print(printable(note))
    if not complete and output.known is None:
        raise ValueError(f"{runs.folder} holds no complete run of {runs.experiment.name}.")
    failures = []
    for deterministic in (False, True):
        number = greedy_episodes(episodes) if deterministic else episodes
        failures += evaluate_all(
            [*complete.values()], runs.folder, number, deterministic, output.progress, lock=not runs.in_training
        )
    results = _collected(runs, complete, studied, output)
    out.mkdir(parents=True, exist_ok=True)
    write_results(results, out / RESULTS)
    print(f"Results: {out / RESULTS} ({(out / RESULTS).stat().st_size / 1000:.0f} kB)")
    draw_results(read_results(out / RESULTS), out)
    if output.agents_to is not None:
        files = share_agents(results, complete, output.agents_to)
        print(f"Agents: {len(files)} in {output.agents_to / results.experiment.name}")
    return failures
