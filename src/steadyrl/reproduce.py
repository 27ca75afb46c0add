"""Runs an experiment: every method in every variant with every seed, then one table and the figures."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import rich.box
from rich.console import Console
from rich.table import Table

from steadyrl.agents import AGENTS, Agent
from steadyrl.checkpoint import write_whole
from steadyrl.envs.resolve import resolve
from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import Curves, draw_learning_curves
from steadyrl.progress import TrainingProgress, bar
from steadyrl.runs import Run, config_of, is_finished, read_metrics, versions
from steadyrl.training import learn_together, rounds_per_record

MEASURES = {
    "return": "return",
    "gini_deviation": "GD",
    "goal_rate": "goal",
    "red_visit_rate": "red visit",
    "white_path_rate": "white path",
}
"""What the table tells of the last tenth of training, and its headings."""


def reproduce(experiment: Experiment, out: Path) -> None:
    """Train what is not there yet, then tell, write and draw what came of it into `out`."""
    train(experiment, out)
    curves = {(v.name, m.name): read_curves(experiment, out, v, m) for v, m in _cells(experiment)}
    rows = [[v.name, m.title, *_told(curves[v.name, m.name])] for v, m in _cells(experiment)]
    headings = ["", "method", *MEASURES.values()]
    title = f"{experiment.title}, last tenth of {experiment.episodes:,} episodes, {experiment.seeds} seeds (± se)"
    Console().print(_table(title, headings, rows))
    notes = [f"{method.title}: {method.source}." for method in experiment.methods]
    print("\n".join(notes))
    write_whole(out / "summary.md", _markdown(title, headings, rows, notes).encode())
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
            told = rounds_per_record(agents[0]) * agents[0].settings.episodes_per_update
            every = max(1, experiment.episodes_per_record // told)
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            runs = [Run(f, a, c, every) for f, a, c in zip(folders, agents, configs, strict=True)]
            shown = TrainingProgress(
                f"{variant.name}  {method.title}", "episodes", experiment.episodes, agents, progress
            )
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


def _told(curves: Curves) -> list[str]:
    """Each of `MEASURES` in the last tenth of training: the mean over seeds and its standard error."""
    told = []
    for name in MEASURES:
        values = curves[name][:, -max(1, curves[name].shape[1] // 10) :].mean(axis=1)
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        rate = name.endswith("_rate")
        told.append(f"{100 * values.mean():.0f} ±{100 * error:.0f} %" if rate else f"{values.mean():.1f} ±{error:.1f}")
    return told


def _table(title: str, headings: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("", "method") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _markdown(title: str, headings: list[str], rows: list[list[str]], notes: list[str]) -> str:
    """The table with what it takes to make it again."""
    made = f"{' '.join(['steadyrl', *sys.argv[1:]])}\n{datetime.now(UTC):%Y-%m-%d}; " + ", ".join(
        f"{name} {version}" for name, version in versions().items()
    )
    lines = [headings, ["---"] * len(headings), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    listed = "\n".join(f"- {note}" for note in notes)
    return f"{title}\n\n```\n{made}\n```\n\n{table}\n\n{listed}\n"
