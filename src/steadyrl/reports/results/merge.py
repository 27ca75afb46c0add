"""Results that were made in parts, on other days or machines, combined seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.shown import shown
from steadyrl.reports.figures.curves import Curves, Recorded
from steadyrl.reports.results.compact import COUNTERS
from steadyrl.reports.results.found import Jobs, plain
from steadyrl.reports.results.results import Cell, Cells, Provenance, Results
from steadyrl.runs.experiment import STUDIES, Experiment
from steadyrl.runs.job import Job


def remaining_jobs(known: Results, experiment: Experiment, jobs: Mapping[tuple[str, str], Job]) -> Jobs:
    """The runs that known results do not have; an error if these are of other settings than the experiment's."""
    remaining: Jobs = {}
    for key, job in jobs.items():
        cell = known.cells.get(key)
        if cell is not None:
            _check_same(cell, known.experiment, experiment, job.title)
        runs = tuple(run for run in job.runs if cell is None or run.seed not in cell.seeds)
        if runs:
            remaining[key] = dataclasses.replace(job, runs=runs)
    return remaining


def merge(known: Results, new: Results) -> Results:
    """Both together. A seed that both have counts once, as in `new`. The same goes for the studies of both."""
    if known.evaluation_episodes != new.evaluation_episodes:
        raise ValueError(
            f"the final policies of earlier results were evaluated in {known.evaluation_episodes:,} episodes, and "
            f"these in {new.evaluation_episodes:,}. Use --evaluation-episodes {known.evaluation_episodes}."
        )
    experiment = _experiment(known.experiment, new.experiment)
    cells: Cells = {}
    for variant in experiment.variants:
        for method in experiment.methods:
            key = variant.name, method.name
            before, now = known.cells.get(key), new.cells.get(key)
            if before is not None and now is not None:
                _check_same(before, known.experiment, new.experiment, f"{variant.name}  {method.title}")
                unit = next(iter(experiment.scale_of(method).budget))
                cells[key] = _cell(before, now, unit)
            elif before is not None or now is not None:
                cells[key] = now or before  # type: ignore[assignment]
    merged = Results(experiment, cells, _provenance(known.provenance, new.provenance), new.evaluation_episodes)
    for name in STUDIES:
        merged = _with_study(merged, name, known, new)
    return merged


def _with_study(merged: Results, name: str, known: Results, new: Results) -> Results:
    """The results with a study that one of the two has, or both."""
    described = new.experiment.studies.get(name) or known.experiment.studies.get(name)
    found = [one.studies[name] for one in (known, new) if name in one.studies]
    if described is None or not found:
        return merged
    return merged.with_study(name, described, merge(*found) if len(found) == 2 else found[0])


def _experiment(known: Experiment, new: Experiment) -> Experiment:
    """The new experiment, with the variants and methods of both: those of the known one first, in its order."""
    variants = {one.name: one for one in (*known.variants, *new.variants)}
    methods = {one.name: one for one in (*known.methods, *new.methods)}
    return dataclasses.replace(new, variants=tuple(variants.values()), methods=tuple(methods.values()))


def _check_same(cell: Cell, known: Experiment, experiment: Experiment, title: str) -> None:
    """Refuse to combine seeds of a method that were not trained alike."""
    now = next(method for method in experiment.methods if method.name == cell.method.name)
    pairs = {
        "agent": (cell.method.agent, now.agent),
        "budget": (known.scale_of(cell.method).budget, experiment.scale_of(now).budget),
        **{
            name: (cell.method.settings.get(name), now.settings.get(name))
            for name in sorted(cell.method.settings.keys() | now.settings.keys())
        },
    }
    for name, (before, after) in pairs.items():
        if plain(before) != plain(after):
            raise ValueError(
                f"{title}: its {name} is {shown(before, 40)} in the earlier results, and {shown(after, 40)} here: "
                "they cannot be combined."
            )


def _cell(known: Cell, new: Cell, unit: str) -> Cell:
    """The seeds of both in increasing order."""
    source = {seed: (known, k) for k, seed in enumerate(known.seeds)}
    source |= {seed: (new, k) for k, seed in enumerate(new.seeds)}
    order = [source[seed] for seed in sorted(source)]
    training, evaluations = (
        _stack(order, {id(cell): getattr(cell.recorded, kind) for cell in (known, new)}, unit)
        for kind in ("training", "evaluations")
    )
    finals = _stack(order, {id(cell): cell.recorded.finals or {} for cell in (known, new)})
    notes = tuple(dict.fromkeys((*known.recorded.notes, *new.recorded.notes)))
    evaluated = bool(known.policies or new.policies)
    policies = tuple(cell.policies[k] if cell.policies else None for cell, k in order) if evaluated else ()
    return Cell(
        new.variant, new.method, Recorded(training, evaluations, notes, finals), tuple(sorted(source)), policies
    )


def _stack(order: list[tuple[Cell, int]], curves: dict[int, Curves], unit: str | None = None) -> Curves:
    """The rows of each seed, of the metrics that all have; with a unit, all at the points of the first seed."""
    first = curves[id(order[0][0])]
    names = [name for name in first if all(name in curves[id(cell)] for cell, _ in order)]
    stacked: dict[str, list[Any]] = {name: [] for name in names}
    for cell, k in order:
        own = curves[id(cell)]
        for name, rows in stacked.items():
            rows.append(_at(first[unit][0], own[unit][k], own[name][k], name) if unit else own[name][k])
    return {name: np.array(rows) for name, rows in stacked.items()}


def _at(grid: NDArray[np.float64], points: NDArray[np.float64], values: NDArray[np.float64], name: str) -> Any:
    if np.array_equal(grid, points):
        return values
    between = np.interp(grid, points, values)
    return np.round(between) if name in COUNTERS else between


def _provenance(known: Provenance, new: Provenance) -> Provenance:
    """Of the later one, with the commands and commits of both."""
    earlier, later = sorted((known, new), key=lambda made: made.date)
    commands = dict.fromkeys([*earlier.command.splitlines(), *later.command.splitlines()])
    commits = sorted({*known.commit.split(), *new.commit.split()})
    return later._replace(command="\n".join(commands), commit=" ".join(commits))
