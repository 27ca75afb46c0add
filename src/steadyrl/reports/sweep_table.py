"""The result table of a sweep: measures at the end of training, over the completed seeds of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from steadyrl.reports.curves import read_curves
from steadyrl.reports.figures.curves import last_tenth
from steadyrl.training.run_folder import METRICS, is_complete

if TYPE_CHECKING:
    from steadyrl.runs.job import Job

COLUMNS = {"return": "return", "undiscounted_gini_deviation": "GD", "length": "steps"}
"""Metrics of the training episodes, and their column headings."""


def print_cells(cells: Sequence[Job]) -> None:
    """Print a row per cell: the mean over seeds in the last tenth of training, and its standard error."""
    table = Table(title="Last tenth of training", title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for heading in ("runs", *COLUMNS.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell in cells:
        complete = [folder for folder in cell.folders if is_complete(folder)]
        curves = read_curves(complete, METRICS, cell.plan.unit) if complete else {}
        values = [_format(last_tenth(curves[name])) if name in curves else "" for name in COLUMNS]
        table.add_row(cell.runs[0].title, f"{len(complete)}/{len(cell.folders)}", *values)
    Console().print(table)


def _format(values: NDArray[np.float64]) -> str:
    error = f" ±{values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"
