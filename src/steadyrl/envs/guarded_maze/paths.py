"""Shortest paths through a maze, by breadth-first search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ShortestPaths(NamedTuple):
    """One of the shortest paths and how many there are."""

    path: tuple[int, ...]
    """The cells of one of them, from start to goal."""
    number: int
    """The number of paths as short as this one."""


def shortest_paths(
    destination: NDArray[np.int32], start: int, goal: NDArray[np.bool_], avoid: NDArray[np.bool_]
) -> ShortestPaths | None:
    """The shortest paths from `start` to any goal without a cell to avoid; None where there is none.

    Args:
        destination: [S, A], the cell in which a move ends.
        start: the first cell of the path.
        goal: [S], the cells at which a path may end.
        avoid: [S], the cells that no path may enter.
    """
    came_from: dict[int, int | None] = {start: None}
    ways = {start: 1}  # how many shortest paths lead to each cell at the present distance
    while ways:
        reached = [cell for cell in ways if goal[cell]]
        if reached:
            return ShortestPaths(_trace(came_from, reached[0]), sum(ways[cell] for cell in reached))
        ways_on: dict[int, int] = {}
        for cell, count in ways.items():
            for target in destination[cell].tolist():
                if not avoid[target] and (target in ways_on or target not in came_from):
                    came_from.setdefault(target, cell)
                    ways_on[target] = ways_on.get(target, 0) + count
        ways = ways_on
    return None


def _trace(came_from: dict[int, int | None], goal: int) -> tuple[int, ...]:
    path = []
    cell: int | None = goal
    while cell is not None:
        path.append(cell)
        cell = came_from[cell]
    return tuple(reversed(path))
