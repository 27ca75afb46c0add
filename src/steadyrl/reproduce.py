"""Runs an experiment: every method in every variant with every seed, then tables and figures of what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

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
    for name in experiment.figures:
        if name == "sensitivity":
            continue
        pictures.append(out / f"{name}.png")
        draw_curves(experiment, {key: cell.recorded for key, cell in cells.items()}, name, pictures[-1])
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
    kept = 0
    with bar() as progress:
        for variant, method in cells_of(experiment):
            agents = make_agents(experiment, variant, method)
            # Where agents learn one after the other anyway, each is kept or trained by itself.
            groups = [agents] if agents[0].engine == "compiled" else [[agent] for agent in agents]
            for group in groups:
                kept += train_together(experiment, variant, method, group, out, progress)
    if kept:
        print(f"Kept {kept} finished runs in {out}; remove it to train them anew.")


def train_together(
    experiment: Experiment, variant: Variant, method: Method, agents: list[Agent], out: Path, progress: Progress
) -> int:
    """Train agents that differ in their seeds alone, unless all their runs are there; how many runs were kept."""
    scale, seeds = experiment.scale, [agent.seed for agent in agents]
    evaluated = {"every": scale.episodes_per_evaluation, "episodes": experiment.evaluation_episodes}
    configs = [{**config_of(agent, seeds, {"episodes": scale.episodes}), "evaluations": evaluated} for agent in agents]
    folders = [run_folder(out, variant, method, seed) for seed in seeds]
    if all(is_finished(folder, config) for folder, config in zip(folders, configs, strict=True)):
        return len(folders)
    for folder, config in zip(folders, configs, strict=True):
        if (folder / CHECKPOINT).exists() and not is_finished(folder, config):
            raise FileExistsError(
                f"{folder} holds a finished run with other settings, seeds or versions. "
                "Choose another --out, or remove it."
            )
        shutil.rmtree(folder, ignore_errors=True)
    told = rounds_per_record(agents[0]) * agents[0].settings.n
    every = max(1, scale.episodes_per_record // told)
    runs = [Run(f, a, c, every) for f, a, c in zip(folders, agents, configs, strict=True)]
    title = f"{variant.name}  {method.title}" + (f"  seed {seeds[0]}" if len(seeds) == 1 else "")
    evaluations = EvaluationCurve(runs, **evaluated)
    shown = TrainingProgress(title, "episodes", scale.episodes, agents, progress)
    listeners: list[Listener] = [*runs, evaluations, shown]
    learn_together(agents, total_episodes=scale.episodes, progress_bar=False, listeners=listeners)
    evaluations.finish()
    for run in runs:
        run.save()
    return 0


def make_agents(experiment: Experiment, variant: Variant, method: Method) -> list[Agent]:
    """One agent for each seed."""
    make = partial(resolve, experiment.env, **variant.options)
    seeds = range(experiment.scale.seeds)
    return [AGENTS[method.agent](make, seed=seed, engine=experiment.engine, **method.settings) for seed in seeds]


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
        cells[variant.name, method.name] = Cell(variant, method, read_recorded(folders))
    return cells


def read_recorded(folders: list[Path]) -> Recorded:
    """What the runs of all seeds recorded."""
    return Recorded(_read(folders, METRICS), _read(folders, EVALUATIONS))


def _read(folders: list[Path], file: str) -> Curves:
    runs = [read_metrics(folder, file) for folder in folders]
    # A record of a single episode, at the end of a budget, knows no spread.
    names = [name for name in runs[0][0] if all(name in record for run in runs for record in run)]
    return {name: np.array([[record[name] for record in run] for run in runs]) for name in names}
