"""The result table of a sweep: measures at the end of training, over the completed seeds of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.table import Table

from steadyrl.base.shown import printable
from steadyrl.reports.curves import read_curves
from steadyrl.reports.figures.curves import last_tenth
from steadyrl.reports.measures import GD, GD_MEANING
from steadyrl.reports.terminal import print_table
from steadyrl.training.run_files import METRICS
from steadyrl.training.run_folder import is_complete

if TYPE_CHECKING:
    from steadyrl.runs.job import Job

COLUMNS = {"return": "return", "undiscounted_gini_deviation": GD, "length": "steps"}
"""Metrics of the training episodes, and their column headings."""


def print_cells(cells: Sequence[Job]) -> None:
    """Print a row per cell: the mean over seeds in the last tenth of training, and its standard error.

    Runs whose files are damaged are left out, and a line below the table names each. It is an error if all are.
    """
    table = Table(title="Last tenth of training", title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for heading in ("runs", *COLUMNS.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    notes: list[str] = []
    shown = 0
    for cell in cells:
        complete = _complete(cell.folders, notes)
        curves = read_curves(complete, METRICS, cell.plan.unit, notes)
        shown += len(next(iter(curves.values()), ()))
        values = [_format(last_tenth(curves[name])) if name in curves else "" for name in COLUMNS]
        table.add_row(printable(cell.runs[0].title), f"{len(complete)}/{len(cell.folders)}", *values)
    if notes and not shown:
        more = f" And {len(notes) - 1:,} more." if len(notes) > 1 else ""
        raise ValueError(printable(f"no run can be shown in a table: {notes[0]}{more}"))
    print_table(table)
    print(GD_MEANING)
    for note in notes:
        print(printable(note))


def _complete(folders: Sequence[Path], notes: list[str]) -> list[Path]:
    """The folders of complete runs; a sentence in `notes` for each that cannot be read."""
    complete = []
    for folder in folders:
        try:
            complete += [folder] if is_complete(folder) else []
        except (ValueError, OSError) as error:
            notes.append(f"{folder} is left out: {error}")
    return complete


def _format(values: NDArray[np.float64]) -> str:
    error = f" ±{values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"
