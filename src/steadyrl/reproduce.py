"""Runs an experiment: every method in every variant with every seed, then one table and the figures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import rich.box
from rich.console import Console
from rich.table import Table

from steadyrl.agents import AGENTS, Agent
from steadyrl.envs.resolve import resolve
from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import Curves, draw_learning_curves
from steadyrl.progress import TrainingProgress, bar
from steadyrl.runs import Run, config_of, is_finished, read_metrics
from steadyrl.training import learn_together

MEASURES = {
    "return": "return",
    "gini_deviation": "GD",
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
}
"""What the table tells of the last tenth of training, and its headings."""


def reproduce(experiment: Experiment, out: Path) -> None:
    """Train what is not there yet, print the table and draw the learning curves into `out`."""
    train(experiment, out)
    curves = {(v.name, m.name): read_curves(experiment, out, v, m) for v, m in _cells(experiment)}
    Console().print(_table(experiment, curves))
    for method in experiment.methods:
        print(f"{method.title}: settings {method.source}.")
    picture = out / "learning_curves.png"
    draw_learning_curves(experiment, curves, picture)
    print(f"Learning curves: {picture}")


def train(experiment: Experiment, out: Path) -> None:
    """Train every method in every variant; runs that `out` already holds whole are kept."""
    reused = 0
    with bar() as progress:
        for variant, method in _cells(experiment):
            agents = make_agents(experiment, variant, method)
            budget = {"episodes": experiment.episodes}
            seeds = [agent.seed for agent in agents]
            configs = [config_of(agent, seeds, budget) for agent in agents]
            folders = [run_folder(out, variant, method, seed) for seed in seeds]
            if all(is_finished(folder, config) for folder, config in zip(folders, configs, strict=True)):
                reused += len(folders)
                continue
            every = max(1, experiment.episodes_per_record // agents[0].settings.episodes_per_update)
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            runs = [Run(f, a, c, every) for f, a, c in zip(folders, agents, configs, strict=True)]
            shown = TrainingProgress(f"{variant.name}  {method.title}", "episodes", experiment.episodes, progress)
            learn_together(agents, total_episodes=experiment.episodes, progress_bar=False, listeners=[*runs, shown])
            for run in runs:
                run.save()
    if reused:
        print(f"Kept {reused} finished runs in {out}; remove it to train them anew.")


def make_agents(experiment: Experiment, variant: Variant, method: Method) -> list[Agent]:
    """One agent for each seed."""
    env = resolve(experiment.env, **variant.options)
    return [AGENTS[method.agent](env, seed=seed, **method.settings) for seed in range(experiment.seeds)]


def run_folder(out: Path, variant: Variant, method: Method, seed: int) -> Path:
    """Where a run lives."""
    return out / variant.name.replace(" ", "-") / method.name / f"seed{seed}"


def read_curves(experiment: Experiment, out: Path, variant: Variant, method: Method) -> Curves:
    """The metrics of all seeds: name -> [seeds, records]."""
    runs = [read_metrics(run_folder(out, variant, method, seed)) for seed in range(experiment.seeds)]
    return {name: np.array([[record[name] for record in run] for run in runs]) for name in runs[0][0]}


def _cells(experiment: Experiment) -> Iterator[tuple[Variant, Method]]:
    return ((variant, method) for variant in experiment.variants for method in experiment.methods)


def _table(experiment: Experiment, curves: dict[tuple[str, str], Curves]) -> Table:
    table = Table(
        title=f"{experiment.title}, last tenth of {experiment.episodes:,} episodes, {experiment.seeds} seeds (± se)",
        title_justify="left",
        box=rich.box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for heading in ("", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in MEASURES.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for variant, method in _cells(experiment):
        of_cell = curves[variant.name, method.name]
        told = [_told(name, of_cell.get(name)) for name in MEASURES]
        table.add_row(variant.name, method.title, *told)
    return table


def _told(name: str, values: Any) -> str:
    if values is None:
        return ""
    last_tenth = values[:, -max(1, values.shape[1] // 10) :].mean(axis=1)
    error = last_tenth.std(ddof=1) / np.sqrt(len(last_tenth)) if len(last_tenth) > 1 else 0.0
    if name.endswith("_rate"):
        return f"{100 * last_tenth.mean():.0f} ±{100 * error:.0f} %"
    return f"{last_tenth.mean():.1f} ±{error:.1f}"
