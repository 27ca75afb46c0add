"""Runs an experiment: every method in every variant with every seed, then tables and figures of what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steadyrl.experiment import Experiment, Method, Variant
from steadyrl.figures.curves import draw_curves
from steadyrl.figures.sensitivity import draw_sensitivity
from steadyrl.job import Job
from steadyrl.recorded import read_recorded
from steadyrl.report import write_report
from steadyrl.scheduling import Failure, train_all
from steadyrl.summary import Cell, print_summary, write_curves, write_summary


def reproduce(experiment: Experiment, out: Path, on: str = "local", address: str | None = None) -> list[Failure]:
    """Train what is not there yet, then tell, write and draw what came of it into `out`.

    Where and with what is as in `train_all`. If runs fail, those are returned, and there are no tables and figures yet.
    """
    swept, swept_out = experiment.swept(), out.with_name(f"{out.name}-sweep")
    jobs = jobs_of(experiment, out) + (jobs_of(swept, swept_out) if swept is not None else [])
    if failures := train_all(jobs, out, on, address):
        return failures
    cells = read_cells(experiment, out)
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
    return []


def jobs_of(experiment: Experiment, out: Path) -> list[Job]:
    """Every method in every variant, with all seeds."""
    cells = []
    for variant, method in cells_of(experiment):
        scale = experiment.scale_of(method)
        cell = Job(
            env=experiment.env,
            env_options=variant.options,
            agent=method.agent,
            settings=method.settings,
            seeds=tuple(range(scale.seeds)),
            folders=tuple(run_folder(out, variant, method, seed) for seed in range(scale.seeds)),
            budget=scale.budget,
            title=f"{variant.name}  {method.title}",
            engine=experiment.engine,
            evaluations={"every": scale.episodes_per_evaluation, "episodes": experiment.evaluation_episodes},
            episodes_per_record=scale.episodes_per_record,
        )
        cells.append(cell)
    return cells


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
