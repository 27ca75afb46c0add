"""From run folders to results: the curves and the final policies of complete runs."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyrl.reports.configs import validated_config
from steadyrl.reports.curves import read_recorded, readable_folders
from steadyrl.reports.figures.curves import Recorded
from steadyrl.reports.results.compact import POINTS, SWEEP_POINTS, downsample
from steadyrl.reports.results.found import budget_of
from steadyrl.reports.results.results import Cell, Cells, FinalPolicy, Provenance, Results
from steadyrl.reports.tables import columns_of
from steadyrl.runs.experiment import SENSITIVITY, STUDIES, Experiment, Row
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.job import Job

UNKNOWN_COMMIT = "unknown"
"""Of runs that do not say which code they were made with. The code that collects them may be another one."""

_PATHS = ("--out", "--agents-to", "--continue")
"""Options that are followed by a path."""


def greedy_episodes(episodes: int) -> int:
    """How many episodes are played with the most likely actions, where the stochastic policy plays `episodes`."""
    return max(1, episodes // 10)


def collect(experiment: Experiment, jobs: Mapping[tuple[str, str], Job], episodes: int) -> Results:
    """The results of complete runs; `episodes` are those that each final policy was evaluated in."""
    rows = [row for name, rows in experiment.figures.items() if name not in STUDIES for row in rows]
    return _collect(experiment, jobs, rows, POINTS, episodes)


def collect_study(name: str, experiment: Experiment, jobs: Mapping[tuple[str, str], Job]) -> Results:
    """The same of a study of an experiment, whose final policies are not evaluated."""
    points = SWEEP_POINTS if name == SENSITIVITY else POINTS
    return _collect(experiment, jobs, experiment.figures[name], points, 0)


def read_cells(experiment: Experiment, jobs: Mapping[tuple[str, str], Job], episodes: int = 0) -> Cells:
    """All that the runs recorded, and their final policies if they were evaluated."""
    cells: Cells = {}
    for variant in experiment.variants:
        for method in experiment.methods:
            job = jobs.get((variant.name, method.name))
            if job is None:
                continue
            folders, notes = readable_folders([*job.folders], job.plan.unit)
            recorded = dataclasses.replace(read_recorded(folders, job.plan.unit), notes=notes)
            policies = tuple(_final_policy(folder, episodes) for folder in folders) if episodes else ()
            seeds = tuple(run.seed for run in job.runs if run.folder in folders)
            cells[variant.name, method.name] = Cell(variant, method, recorded, seeds, policies)
    return cells


def as_trained(experiment: Experiment, jobs: Mapping[tuple[str, str], Job]) -> Experiment:
    """The experiment with the variants and methods that have runs, the budgets of these, and no studies."""
    methods = []
    for method in experiment.methods:
        folders = [folder for (_, name), job in jobs.items() if name == method.name for folder in job.folders]
        if folders:
            scale = {**method.scale, "timesteps": 0, **budget_of(folders[0])}
            methods.append(dataclasses.replace(method, scale=scale))
    variants = tuple(variant for variant in experiment.variants if any(name == variant.name for name, _ in jobs))
    return dataclasses.replace(experiment, methods=tuple(methods), variants=variants).without_studies()


def _collect(
    experiment: Experiment, jobs: Mapping[tuple[str, str], Job], rows: Any, points: int, episodes: int
) -> Results:
    configs = [validated_config(folder) for job in jobs.values() for folder in job.folders]
    if not configs:
        raise ValueError(f"there is no complete run of {experiment.name}.")
    experiment = as_trained(experiment, jobs)
    cells = read_cells(experiment, jobs, episodes)
    columns = columns_of(experiment, cells.values())
    for key, cell in cells.items():
        finals = {column.key: column.values(cell.recorded) for column in columns if cell.recorded.training}
        training, evaluations = (
            _compact(cell, kind, rows, jobs[key].plan.unit, points) for kind in ("training", "evaluations")
        )
        cells[key] = cell._replace(recorded=Recorded(training, evaluations, cell.recorded.notes, finals))
    return Results(experiment, cells, _provenance(configs), episodes)


def _final_policy(folder: Path, episodes: int) -> FinalPolicy | None:
    evaluated = read_evaluation(folder, episodes)
    if evaluated is None:
        return None
    return FinalPolicy.of(evaluated, read_evaluation(folder, greedy_episodes(episodes), deterministic=True))


def _compact(cell: Cell, kind: str, rows: list[Row], over: str, points: int) -> Any:
    """The training or evaluation curves that figures show, with few points."""
    metrics = dict.fromkeys(row.metric for row in rows if row.of == kind)
    return downsample(getattr(cell.recorded, kind), [*metrics], over, points)


def _provenance(configs: list[dict[str, Any]]) -> Provenance:
    """Of the run that was started last, as far as it is recorded; and the commands and commits of all runs."""
    started = sorted(configs, key=lambda config: str(config.get("started", "")))
    commands, last = [without_folders(str(config.get("command", ""))) for config in started], started[-1]
    commits = {str(config.get("commit") or UNKNOWN_COMMIT) for config in configs}
    return Provenance(
        command="\n".join(dict.fromkeys(filter(None, commands))),
        date=str(last.get("started", ""))[:10],
        versions={name: str(version) for name, version in (last.get("versions") or {}).items()},
        commit=" ".join(sorted(commits)),
    )


def without_folders(command: str) -> str:
    """A command without the folders of somebody's machine that results went to; empty if it cannot be split."""
    try:
        words = iter(shlex.split(command))
    except ValueError:  # A quotation mark without its end: the config was edited.
        return ""
    kept = []
    for word in words:
        option, equals, _ = word.partition("=")
        if option.replace("_", "-") not in _PATHS:
            kept.append(word)
        elif not equals:
            next(words, None)
    return shlex.join(kept)
