"""Maze layouts: conversion between text and a grid of characters, with validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

START, GOAL, RED, WALL, FLOOR = "S", "G", "R", "#", "."
_MEANINGS = f"{START} start, {GOAL} goal, {RED} red, {WALL} wall, {FLOOR} floor"


def parse_layout(layout: str) -> NDArray[np.str_]:
    """The layout as a grid [height, width] with one character per cell.

    Spaces between characters, indentation, and blank lines before and after the layout are ignored: "S.R" and "S . R"
    are the same row.
    """
    if not isinstance(layout, str):
        raise ValueError(
            f"layout is {type(layout).__name__}, not text: write the maze as a string with one line for each row, "
            "such as 'S.G'."
        )
    rows = ["".join(line.split()) for line in layout.strip().splitlines()]
    if not rows:
        raise ValueError(f"layout={layout!r} is empty: a maze needs at least a start and a goal, such as 'S.G'.")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"layout row {number} ({row!r}) has {len(row)} cells and row 0 has {len(rows[0])}: "
                f"all rows must have the same width. Write floor cells as {FLOOR!r}; spaces are ignored."
            )
        for column, character in enumerate(row):
            if character not in {START, GOAL, RED, WALL, FLOOR}:
                raise ValueError(
                    f"layout row {number}, column {column} holds {character!r}, which is not a kind of cell. "
                    f"Use: {_MEANINGS}."
                )
    grid = np.array([list(row) for row in rows])
    starts, goals = np.count_nonzero(grid == START), np.count_nonzero(grid == GOAL)
    if starts != 1:
        raise ValueError(f"layout has {starts} start cells: exactly one is needed. Mark one cell {START!r}.")
    if goals == 0:
        raise ValueError(f"layout has 0 goal cells: at least one is needed. Mark a cell {GOAL!r}.")
    return grid


def format_layout(grid: NDArray[np.str_]) -> str:
    """The grid as text, with one line per row and spaces between cells."""
    return "\n".join(" ".join(row) for row in grid)
