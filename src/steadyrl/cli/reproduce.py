"""`steadyrl reproduce`: train every method of an experiment in every variant, then write tables and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from steadyrl.cli.arguments import (
    Flag,
    PerhapsCount,
    Progress,
    logger_names,
    named,
    names_in,
)
from steadyrl.cli.failures import exit_with_failures, explain_resuming
from steadyrl.cli.page import PAGE, evaluate_many, show_page, write_page

if TYPE_CHECKING:
    from steadyrl.reports.tables import Cell
    from steadyrl.runs.experiment import Experiment
    from steadyrl.runs.scheduler import Failure


@dataclass(frozen=True)
class Reproduce:
    """Train every method of one of the paper's experiments, print its table and draw its figures."""

    experiment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="EXPERIMENT")]
    """Which one, such as maze."""
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
        from steadyrl.runs.experiment import load_experiment

        scale = {"seeds": self.seeds, "episodes": self.episodes, "timesteps": self.timesteps}
        experiment = load_experiment(self.experiment, quick=self.quick, **scale)
        methods = None if self.agents is None else names_in(self.agents)
        out = self.out or Path("results") / (f"{self.experiment}-quick" if self.quick else self.experiment)
        if self.engine is not None:
            experiment = dataclasses.replace(experiment, engine=self.engine)
        chosen = experiment.only(methods) if methods else experiment
        with explain_resuming():
            failures = reproduce(chosen, out, self.on, self.address, logger_names(self.log), self.progress)
        exit_with_failures(failures)
        if self.open and (out / PAGE).is_file():
            show_page(out / PAGE)


def reproduce(
    experiment: Experiment,
    out: Path,
    on: str = "local",
    address: str | None = None,
    loggers: Sequence[str] = (),
    progress: bool = True,
) -> list[Failure]:
    """Train what is not complete yet, then write tables and figures of the results into `out`.

    `on`, `address` and `progress` are those of `train_all`. If runs fail, they are returned, and there are no tables
    and figures.
    """
    from steadyrl.reports.figures.curves import draw_curves
    from steadyrl.reports.figures.sensitivity import draw_sensitivity
    from steadyrl.reports.tables import print_summary, write_curves, write_summary
    from steadyrl.runs.scheduler import train_all

    varied, varied_out = experiment.sensitivity_experiment(), out.with_name(f"{out.name}-sweep")
    jobs = [*experiment.cells(out, loggers).values()]
    more = [*varied.cells(varied_out, loggers).values()] if varied is not None else []
    if failures := train_all([*jobs, *more], out, on, address, progress):
        return failures
    cells = read_cells(experiment, out)
    print_summary(experiment, cells)
    write_summary(experiment, cells, out / "summary.md")
    write_curves(cells, out / "curves.json")
    pictures = []
    recorded = {key: cell.recorded for key, cell in cells.items()}
    for unit, methods in experiment.by_unit().items():
        for name in (figure for figure in experiment.figures if figure != "sensitivity"):
            # Methods whose budget is in timesteps play far fewer episodes than the others.
            pictures.append(out / f"{name}{'_by_steps' * (unit == 'timesteps')}.png")
            draw_curves(methods, recorded, name, pictures[-1], over=unit)
    if varied is not None:
        varied_cells = read_cells(varied, varied_out)
        write_summary(varied, varied_cells, out / "sensitivity.md")
        pictures.append(out / "sensitivity.png")
        draw_sensitivity(experiment, {key: cell.recorded.training for key, cell in varied_cells.items()}, pictures[-1])
    print("\n".join(["The figures are:", *(f"  {picture}" for picture in pictures)]))
    evaluate_many(jobs, out, progress)
    write_page(out, out, [experiment.env])
    return []


def read_cells(experiment: Experiment, out: Path) -> dict[tuple[str, str], Cell]:
    """What the runs of each (variant, method) recorded."""
    from steadyrl.reports.curves import read_recorded
    from steadyrl.reports.tables import Cell

    variants = {variant.name: variant for variant in experiment.variants}
    methods = {method.name: method for method in experiment.methods}
    return {
        (variant, method): Cell(variants[variant], methods[method], read_recorded([*job.folders], job.plan.unit))
        for (variant, method), job in experiment.cells(out).items()
    }
