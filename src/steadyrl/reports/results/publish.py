"""From runs, or from a results file, to the results file and everything that is drawn from it. Nothing is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from steadyrl.base.shown import printable
from steadyrl.reports.results.collect import collect, collect_sweep, greedy_episodes
from steadyrl.reports.results.draw import draw_results
from steadyrl.reports.results.file import RESULTS, read_results, write_results
from steadyrl.reports.results.found import Jobs, complete_jobs, found_jobs
from steadyrl.reports.results.results import Results
from steadyrl.reports.results.share import share_agents
from steadyrl.runs.experiment import Experiment, load_experiment
from steadyrl.runs.final_evaluation import evaluate_all
from steadyrl.runs.scheduler import Failure


class Runs(NamedTuple):
    """The runs of an experiment, complete or not."""

    experiment: Experiment
    jobs: Jobs
    sweep: Jobs
    """Of its sensitivity study; empty if there is none."""
    folder: Path
    in_training: bool = False
    """Whether another process may be training some of them."""

    @classmethod
    def found(cls, experiment: Experiment, folder: Path) -> Runs:
        """Those that are in a folder."""
        varied = experiment.sensitivity_experiment()
        sweep = found_jobs(varied, sweep_folder(folder)) if varied is not None else {}
        return cls(experiment, found_jobs(experiment, folder), sweep, folder, in_training=True)


class Output(NamedTuple):
    """Where results go, and how final policies are evaluated for them."""

    folder: Path | None
    """Of the results file, tables and figures; by default where the runs are."""
    episodes: int
    """In which each final policy is evaluated, unless it was already."""
    agents_to: Path | None = None
    """Folder of agents to share, if they are to be written."""
    progress: bool = True


def sweep_folder(out: Path) -> Path:
    """Where the runs of the sensitivity study are: beside the others, also if their folder is given as "."."""
    out = out if out.name not in ("", "..") else out.resolve()
    return out.with_name(f"{out.name}-sweep")


def draw_from(path: Path, name: str, methods: Sequence[str] | None, output: Output) -> list[Failure]:
    """Draw a results file of the experiment `name`, or the complete runs in a folder, of some methods or all.

    Returns the evaluations that failed.
    """
    experiment = load_experiment(name)
    if path.is_dir():
        runs = Runs.found(experiment.only(methods) if methods else experiment, path)
        return publish(runs, output)
    for option, value in (("agents", methods), ("agents-to", output.agents_to)):
        if value:
            raise ValueError(f"--{option}: that takes the folder of the runs, and {path} is none. Leave it out.")
    results = read_results(path)
    if results.experiment.name != name:
        other = results.experiment.name
        raise ValueError(f"{path} has the results of {other}, not of {name}: steadyrl reproduce {other} --from {path}")
    draw_results(results, output.folder or Path("results") / f"{name}-redrawn")
    return []


def _with_study(results: Results, experiment: Experiment, sweep: Results) -> Results:
    """Results with those of the sensitivity study, if one of its methods has a complete run in the experiment too."""
    study = experiment.sensitivity
    if study is None or not any(method.name in study.values for method in results.experiment.methods):
        print("The sensitivity study is left out: none of its methods has a complete run in the experiment itself.")
        return results
    with_study = dataclasses.replace(results.experiment, sensitivity=study)
    return dataclasses.replace(results, experiment=with_study, sweep=sweep)


def publish(runs: Runs, output: Output) -> list[Failure]:
    """Evaluate complete runs, write their results file, and draw it; returns the evaluations that failed."""
    out, episodes = output.folder or runs.folder, output.episodes
    varied = runs.experiment.sensitivity_experiment()
    complete, notes = complete_jobs(runs.experiment, runs.jobs)
    studied, notes_of_study = complete_jobs(varied, runs.sweep) if varied is not None else ({}, [])
    for note in (*notes, *notes_of_study):
        print(printable(note))
    if not complete:
        raise ValueError(f"{runs.folder} holds no complete run of {runs.experiment.name}.")
    failures = []
    for deterministic in (False, True):
        number = greedy_episodes(episodes) if deterministic else episodes
        failures += evaluate_all(
            [*complete.values()], runs.folder, number, deterministic, output.progress, lock=not runs.in_training
        )
    results = collect(runs.experiment, complete, episodes)
    if varied is not None and studied:
        results = _with_study(results, runs.experiment, collect_sweep(varied, studied))
    out.mkdir(parents=True, exist_ok=True)
    write_results(results, out / RESULTS)
    print(f"Results: {out / RESULTS} ({(out / RESULTS).stat().st_size / 1000:.0f} kB)")
    draw_results(read_results(out / RESULTS), out)
    if output.agents_to is not None:
        files = share_agents(results, complete, output.agents_to)
        print(f"Agents: {len(files)} in {output.agents_to / results.experiment.name}")
    return failures
