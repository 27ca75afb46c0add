"""From a maze drawn as text to a grid of characters, with errors that say what to mend in the drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

START, GOAL, RED, WALL, FLOOR = "S", "G", "R", "#", "."
_MEANINGS = f"{START} start, {GOAL} goal, {RED} red, {WALL} wall, {FLOOR} floor"


def read(layout: str) -> NDArray[np.str_]:
    """The grid [height, width] of a drawing, one character a cell.

    Spaces between characters, indentation and blank lines around the drawing carry no meaning:
    "S.R" and "S . R" are the same row.
    """
    rows = ["".join(line.split()) for line in layout.strip().splitlines()]
    if not rows:
        raise ValueError(f"layout={layout!r} is empty: draw at least a start and a goal, such as 'S.G'.")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"layout row {number} ({row!r}) has {len(row)} cells and row 0 has {len(rows[0])}: "
                f"every row of a maze has the same width. Draw floor as {FLOOR!r}; spaces are ignored."
            )
        for column, character in enumerate(row):
            if character not in {START, GOAL, RED, WALL, FLOOR}:
                raise ValueError(
                    f"layout row {number}, column {column} holds {character!r}, which means nothing here. "
                    f"Use: {_MEANINGS}."
                )
    grid = np.array([list(row) for row in rows])
    starts, goals = np.count_nonzero(grid == START), np.count_nonzero(grid == GOAL)
    if starts != 1:
        raise ValueError(f"layout has {starts} start cells: an episode begins in one place. Mark one cell {START!r}.")
    if goals == 0:
        raise ValueError(f"layout has 0 goal cells: no episode could succeed. Mark at least one cell {GOAL!r}.")
    return grid


def write(grid: NDArray[np.str_]) -> str:
    """The drawing of a grid, with a space between cells and a line for each row."""
    return "\n".join(" ".join(row) for row in grid)
