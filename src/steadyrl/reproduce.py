"""Runs an experiment: every method in every variant with every seed, then tables and figures of what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from steadyrl.agents import AGENTS, Agent
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation_curve import EvaluationCurve
from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import Curves, Recorded, draw_curves
from steadyrl.figures.sensitivity import draw_sensitivity
from steadyrl.progress import TrainingProgress, bar
from steadyrl.report import write_report
from steadyrl.runs import CHECKPOINT, EVALUATIONS, METRICS, Run, config_of, is_finished, read_metrics
from steadyrl.summary import Cell, print_summary, write_curves, write_summary
from steadyrl.training import Listener, learn_together, rounds_per_record
from steadyrl.workers import do_all

MOST_POINTS = 200
"""Of a curve over steps."""


def reproduce(experiment: Experiment, out: Path) -> None:
    """Train what is not there yet, then tell, write and draw what came of it into `out`."""
    train(experiment, out)
    cells = read_cells(experiment, out)
    swept, swept_out = experiment.swept(), out.with_name(f"{out.name}-sweep")
    if swept is not None:
        train(swept, swept_out)
    print_summary(experiment, cells)
    write_summary(experiment, cells, out / "summary.md")
    write_curves(cells, out / "curves.json")
    pictures = []
    recorded = {key: cell.recorded for key, cell in cells.items()}
    for unit, methods in experiment.by_unit().items():
        for name in (figure for figure in experiment.figures if figure != "sensitivity"):
            # Methods that are trained for so many steps play far fewer episodes than the others.
            pictures.append(out / f"{name}{'_by_steps' * (unit == 'timesteps')}.png")
            draw_curves(methods, recorded, name, pictures[-1], over=unit)
    if swept is not None:
        swept_cells = read_cells(swept, swept_out)
        write_summary(swept, swept_cells, out / "sensitivity.md")
        pictures.append(out / "sensitivity.png")
        draw_sensitivity(experiment, {key: cell.recorded.training for key, cell in swept_cells.items()}, pictures[-1])
    print(f"Pictures: {', '.join(map(str, pictures))}")
    try:
        print(f"Page: {write_report(out)}")
    except ImportError as error:
        print(f"Page: not written. {error}")


def train(experiment: Experiment, out: Path) -> None:
    """Train every method in every variant; runs that `out` already holds whole are kept."""
    kept, apart, seeds = 0, [], range(experiment.scale.seeds)
    with bar() as progress:
        for variant, method in cells_of(experiment):
            agent = make_agent(experiment, variant, method, seed=0)
            if agent.engine == "compiled":
                kept += train_seeds(experiment, variant, method, seeds, out, progress)
                continue
            # Where agents cannot learn in one program, each is kept or trained by itself.
            config = run_config(experiment, method, agent, [0])
            for seed in seeds:
                folder = run_folder(out, variant, method, seed)
                finished = is_kept(folder, {**config, "seed": seed, "seeds": [seed]})
                apart += [] if finished else [(experiment, variant, method, [seed], out)]
                kept += finished
        do_all(train_seeds, apart, progress)
    if kept:
        print(f"Kept {kept} finished runs in {out}; remove it to train them anew.")


def train_seeds(
    experiment: Experiment, variant: Variant, method: Method, seeds: Sequence[int], out: Path, progress: Progress
) -> int:
    """Train the agents of these seeds together, unless all their runs are there; how many runs were kept."""
    agents = [make_agent(experiment, variant, method, seed) for seed in seeds]
    return train_together(experiment, variant, method, agents, out, progress)


def train_together(
    experiment: Experiment, variant: Variant, method: Method, agents: list[Agent], out: Path, progress: Progress
) -> int:
    """Train agents that differ in their seeds alone, unless all their runs are there; how many runs were kept."""
    scale, seeds = experiment.scale_of(method), [agent.seed for agent in agents]
    configs = [run_config(experiment, method, agent, seeds) for agent in agents]
    folders = [run_folder(out, variant, method, seed) for seed in seeds]
    if all([is_kept(folder, config) for folder, config in zip(folders, configs, strict=True)]):
        return len(folders)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    told = rounds_per_record(agents[0]) * agents[0].settings.n
    every = max(1, scale.episodes_per_record // told)
    runs = [Run(f, a, c, every) for f, a, c in zip(folders, agents, configs, strict=True)]
    title = f"{variant.name}  {method.title}" + (f"  seed {seeds[0]}" if len(seeds) == 1 else "")
    evaluations = EvaluationCurve(runs, **configs[0]["evaluations"])
    ((unit, total),) = scale.budget.items()
    shown = TrainingProgress(title, unit, total, agents, progress)
    listeners: list[Listener] = [*runs, evaluations, shown]
    budget: dict[str, Any] = {f"total_{unit}": total}
    learn_together(agents, **budget, progress_bar=False, listeners=listeners)
    evaluations.finish()
    for run in runs:
        run.save()
    return 0


def is_kept(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the run is there whole; an error if another one is."""
    if is_finished(folder, config):
        return True
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(
            f"{folder} holds a finished run with other settings, seeds or versions. Choose another --out, or remove it."
        )
    return False


def run_config(experiment: Experiment, method: Method, agent: Agent, seeds: Sequence[int]) -> dict[str, Any]:
    """All that the result of a run depends on, when these seeds are trained together."""
    scale = experiment.scale_of(method)
    evaluated = {"every": scale.episodes_per_evaluation, "episodes": experiment.evaluation_episodes}
    return {**config_of(agent, seeds, scale.budget), "evaluations": evaluated}


def make_agent(experiment: Experiment, variant: Variant, method: Method, seed: int) -> Agent:
    """An agent that has learned nothing yet."""
    make = partial(resolve, experiment.env, **variant.options)
    return AGENTS[method.agent](make, seed=seed, engine=experiment.engine, **method.settings)


def cells_of(experiment: Experiment) -> Iterator[tuple[Variant, Method]]:
    """Every method in every variant."""
    return ((variant, method) for variant in experiment.variants for method in experiment.methods)


def run_folder(out: Path, variant: Variant, method: Method, seed: int) -> Path:
    """Where a run lives."""
    return out / variant.name.replace(" ", "-") / method.name / f"seed{seed}"


def read_cells(experiment: Experiment, out: Path) -> dict[tuple[str, str], Cell]:
    """What the runs of each (variant, method) have to tell."""
    cells = {}
    for variant, method in cells_of(experiment):
        folders = [run_folder(out, variant, method, seed) for seed in range(experiment.scale.seeds)]
        (unit,) = experiment.scale_of(method).budget
        cells[variant.name, method.name] = Cell(variant, method, read_recorded(folders, unit))
    return cells


def read_recorded(folders: list[Path], over: str = "episodes") -> Recorded:
    """What the runs of all seeds recorded, "episodes" or "timesteps" being what they have in common."""
    return Recorded(_read(folders, METRICS, over), _read(folders, EVALUATIONS, over))


def _read(folders: list[Path], file: str, over: str) -> Curves:
    runs = [read_metrics(folder, file) for folder in folders]
    # A record of a single episode, at the end of a budget, knows no spread: it is left out.
    runs = [[record for record in run if run[0].keys() <= record.keys()] for run in runs]
    names = [name for name in runs[0][0] if all(name in run[0] for run in runs)]
    curves = [{name: np.array([record[name] for record in run]) for name in names} for run in runs]
    if over == "timesteps":
        # Seeds play different numbers of episodes: each is read at the same steps, between its records.
        steps = [curve["timesteps"] for curve in curves]
        first, last = max(some[0] for some in steps), min(some[-1] for some in steps)
        at = np.linspace(min(first, last), last, min(max(map(len, steps)), MOST_POINTS))
        curves = [{name: np.interp(at, of["timesteps"], of[name]) for name in names} for of in curves]
    return {name: np.array([curve[name] for curve in curves]) for name in names}
