"""What came of a sweep, in a table: the end of training in each cell, over the seeds that are complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from steadyrl.figures.curves import last_tenth
from steadyrl.recorded import read_curves
from steadyrl.runs import METRICS, is_complete

if TYPE_CHECKING:
    from steadyrl.job import Job

COLUMNS = {"return": "return", "undiscounted_gini_deviation": "GD", "length": "steps"}
"""Metrics of the episodes that were learned from, and what they are called."""


def print_cells(cells: Sequence[Job]) -> None:
    """A row for each cell: mean over seeds in the last tenth of training, and its standard error."""
    table = Table(title="Last tenth of training", title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for heading in ("runs", *COLUMNS.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell in cells:
        complete = [folder for folder in cell.folders if is_complete(folder)]
        (unit,) = cell.budget
        curves = read_curves(complete, METRICS, unit) if complete else {}
        values = [_told(last_tenth(curves[name])) if name in curves else "" for name in COLUMNS]
        table.add_row(cell.title, f"{len(complete)}/{len(cell.folders)}", *values)
    Console().print(table)


def _told(values: NDArray[np.float64]) -> str:
    error = f" ±{values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"
