"""Pictures of a maze and the agent in it, as text and as pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.guarded_maze import layout as drawing
from steadyrl.envs.guarded_maze.definition import Maze

CELL_PIXELS = 32
COLOURS = {
    drawing.START: (255, 255, 255),
    drawing.FLOOR: (255, 255, 255),
    drawing.WALL: (128, 128, 128),
    drawing.RED: (214, 64, 56),
    drawing.GOAL: (72, 168, 92),
}
AGENT_COLOUR = (40, 44, 52)
LINE_COLOUR = (208, 208, 208)
_AGENT_RADIUS = 0.3  # of a cell


def as_text(maze: Maze, cell: int) -> str:
    """The drawing of the maze with an A where the agent is."""
    grid = maze.grid.copy()
    grid.flat[cell] = "A"
    return drawing.write(grid)


def as_pixels(maze: Maze, cell: int) -> NDArray[np.uint8]:
    """[height * 32, width * 32, 3]: the maze from above, the agent a dark dot."""
    colours = np.array([COLOURS[kind] for kind in maze.grid.flat], dtype=np.uint8).reshape(*maze.grid.shape, 3)
    image = colours.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)
    for edge in (0, -1):  # A line on both sides of each cell, so that the outermost ones close the frame.
        image[edge % CELL_PIXELS :: CELL_PIXELS] = LINE_COLOUR
        image[:, edge % CELL_PIXELS :: CELL_PIXELS] = LINE_COLOUR
    row, column = np.array(divmod(cell, maze.grid.shape[1])) * CELL_PIXELS
    distance = (np.arange(CELL_PIXELS) + 0.5) / CELL_PIXELS - 0.5
    disc = distance[:, None] ** 2 + distance**2 < _AGENT_RADIUS**2
    image[row : row + CELL_PIXELS, column : column + CELL_PIXELS][disc] = AGENT_COLOUR
    return image
