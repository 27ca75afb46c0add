"""Tables and figures of results, whether they were just collected or read from a file."""

from __future__ import annotations

from pathlib import Path

from steadyrl.reports.figures.curves import draw_curves
from steadyrl.reports.figures.distributions import draw_distributions
from steadyrl.reports.figures.lambda_curves import draw_lambda_curves
from steadyrl.reports.figures.sensitivity import draw_sensitivity
from steadyrl.reports.final_table import final_section, print_final_table
from steadyrl.reports.results.results import Results
from steadyrl.reports.tables import print_summary, write_summary
from steadyrl.runs.experiment import SENSITIVITY, STUDIES

SUMMARY = "summary.md"


def draw_results(results: Results, out: Path) -> None:
    """Print the tables, and write them and the figures into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    experiment, cells = results.experiment, results.cells
    print_summary(experiment, cells)
    print_final_table(results)
    write_summary(experiment, cells, out / SUMMARY, results.provenance, final_section(results))
    pictures = [*_draw_curves(results, out)]
    if draw_distributions(results, out / "distributions.png"):
        pictures.append(out / "distributions.png")
    for name, study in results.studies.items():
        if name in experiment.studies:
            write_summary(study.experiment, study.cells, out / f"{name}.md", study.provenance)
            pictures.append(out / f"{name}.png")
            _draw_study(name, results, study, pictures[-1])
    print("\n".join(["The figures are:", *(f"  {picture}" for picture in pictures)]))


def _draw_study(name: str, results: Results, study: Results, path: Path) -> None:
    recorded = {key: cell.recorded for key, cell in study.cells.items()}
    if name == SENSITIVITY:
        draw_sensitivity(results.experiment, {key: one.training for key, one in recorded.items()}, path)
    else:
        draw_lambda_curves(results.experiment, recorded, path)


def _draw_curves(results: Results, out: Path) -> list[Path]:
    recorded = {key: cell.recorded for key, cell in results.cells.items()}
    pictures = []
    for unit, methods in results.experiment.by_unit().items():
        names = {method.name for method in methods.methods}
        of_unit = {key: one for key, one in recorded.items() if key[1] in names}
        for name in (figure for figure in methods.figures if figure not in STUDIES):
            # Methods whose budget is in timesteps play far fewer episodes than the others.
            pictures.append(out / f"{name}{'_by_steps' * (unit == 'timesteps')}.png")
            draw_curves(methods, of_unit, name, pictures[-1], over=unit)
    return pictures
