"""Shortest paths through a maze, by breadth-first search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ShortestPaths(NamedTuple):
    """One shortest path, and the number of shortest paths."""

    path: tuple[int, ...]
    """The cells of one shortest path, from start to goal."""
    number: int
    """The number of paths of this length."""


def shortest_paths(
    destination: NDArray[np.int32], start: int, goal: NDArray[np.bool_], avoid: NDArray[np.bool_]
) -> ShortestPaths | None:
    """The shortest paths from `start` to any goal cell that avoid the cells in `avoid`; None if there is no path.

    Args:
        destination: [S, A], the next cell for each cell and action.
        start: The first cell of the path.
        goal: [S] bool, the goal cells.
        avoid: [S] bool, the cells that a path must not enter.
    """
    parents: dict[int, int | None] = {start: None}
    frontier = {start: 1}  # Cells at the current distance -> number of shortest paths to each.
    while frontier:
        reached = [cell for cell in frontier if goal[cell]]
        if reached:
            return ShortestPaths(_backtrack(parents, reached[0]), sum(frontier[cell] for cell in reached))
        next_frontier: dict[int, int] = {}
        for cell, count in frontier.items():
            for target in destination[cell].tolist():
                if not avoid[target] and (target in next_frontier or target not in parents):
                    parents.setdefault(target, cell)
                    next_frontier[target] = next_frontier.get(target, 0) + count
        frontier = next_frontier
    return None


def _backtrack(parents: dict[int, int | None], goal: int) -> tuple[int, ...]:
    path = []
    cell: int | None = goal
    while cell is not None:
        path.append(cell)
        cell = parents[cell]
    return tuple(reversed(path))
