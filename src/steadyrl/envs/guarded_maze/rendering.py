"""Rendering of a maze and the agent, as text and as an RGB image."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.envs.guarded_maze.layout import FLOOR, GOAL, RED, START, WALL, format_layout

CELL_PIXELS = 32
COLOURS = {
    START: (255, 255, 255),
    FLOOR: (255, 255, 255),
    WALL: (128, 128, 128),
    RED: (214, 64, 56),
    GOAL: (72, 168, 92),
}
AGENT_COLOUR, TRAIL_COLOUR = (40, 44, 52), (84, 90, 104)
LINE_COLOUR = (208, 208, 208)
_AGENT_RADIUS, _TRAIL_RADIUS = 0.3, 0.1  # of a cell


def as_text(maze: Maze, cell: int) -> str:
    """The layout with an A at the cell of the agent."""
    grid = maze.grid.copy()
    grid.flat[cell] = "A"
    return format_layout(grid)


def as_pixels(maze: Maze, cell: int, visited: Iterable[int] = ()) -> NDArray[np.uint8]:
    """[height * 32, width * 32, 3]: the maze seen from above: a dark dot for the agent, small ones where it was."""
    colours = np.array([COLOURS[kind] for kind in maze.grid.flat], dtype=np.uint8).reshape(*maze.grid.shape, 3)
    image = colours.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)
    for edge in (0, -1):  # Lines on both sides of each cell, so that the maze has a closed frame.
        image[edge % CELL_PIXELS :: CELL_PIXELS] = LINE_COLOUR
        image[:, edge % CELL_PIXELS :: CELL_PIXELS] = LINE_COLOUR
    for each in visited:
        _draw_disc(image, maze, each, _TRAIL_RADIUS, TRAIL_COLOUR)
    _draw_disc(image, maze, cell, _AGENT_RADIUS, AGENT_COLOUR)
    return image


def _draw_disc(image: NDArray[np.uint8], maze: Maze, cell: int, radius: float, colour: tuple[int, int, int]) -> None:
    row, column = np.array(divmod(cell, maze.grid.shape[1])) * CELL_PIXELS
    distance = (np.arange(CELL_PIXELS) + 0.5) / CELL_PIXELS - 0.5
    disc = distance[:, None] ** 2 + distance**2 < radius**2
    image[row : row + CELL_PIXELS, column : column + CELL_PIXELS][disc] = colour
