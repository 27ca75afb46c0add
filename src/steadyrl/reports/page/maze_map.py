"""SVG heat map of the visits to the cells of a maze."""

from __future__ import annotations

import html
import math

from steadyrl.envs.guarded_maze import Maze
from steadyrl.envs.guarded_maze.layout import FLOOR, GOAL, RED, START, WALL
from steadyrl.reports.page import formatting
from steadyrl.reports.page.evaluation import Array

CELL = 40
"""Size of a cell in SVG units; the page scales the image."""
MIN_VISITS = 0.01
"""Cells with fewer visits per episode are white."""
MAX_NUMBERED_WIDTH = 8
"""Wider mazes are drawn without numbers in the cells."""
_SHADES = ((239, 246, 252), (158, 202, 225), (66, 146, 198), (8, 81, 156), (8, 34, 84))
_MARKS = {START: ("start", "#1f2933"), GOAL: ("goal", "#2f8f4e"), RED: ("red", "#d64038")}


def maze_map(maze: Maze, visits: Array, max_visits: float) -> str:
    """The SVG; `max_visits` visits per episode have the darkest shade, on a logarithmic scale."""
    height, width = maze.grid.shape
    numbered = width <= MAX_NUMBERED_WIDTH
    cells = [
        _cell(maze.grid[row, column], row, column, float(visits[row, column]), max_visits, numbered)
        for row in range(height)
        for column in range(width)
    ]
    # The frames of start, goal and red cells come last, on top of adjacent cells.
    content = "".join(body for body, _ in cells) + "".join(frame for _, frame in cells)
    box = f"-2 -2 {width * CELL + 4} {height * CELL + 4}"
    return f'<svg class="maze" viewBox="{box}" role="img" aria-label="visits of each cell">{content}</svg>'


def _cell(kind: str, row: int, column: int, visits: float, max_visits: float, numbered: bool) -> tuple[str, str]:
    x, y = column * CELL, row * CELL
    if kind == WALL:
        return f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="wall"/>', ""
    depth = _depth(visits, max_visits)
    name = "" if kind == FLOOR else f"{_MARKS[kind][0]}: "
    tooltip = f"{name}{formatting.number(visits)} visits per episode"
    text = ""
    if numbered and depth is not None:
        ink = "#ffffff" if depth > 0.45 else "#1f2933"
        text = f'<text x="{x + CELL / 2:g}" y="{y + CELL / 2 + 6:g}" fill="{ink}">{_short(visits)}</text>'
    body = (
        f'<g><title>{html.escape(tooltip)}</title><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" '
        f'fill="{_shade(depth)}" class="cell"/>{text}</g>'
    )
    if kind == FLOOR:
        return body, ""
    colour = _MARKS[kind][1]
    letter = f'<text x="{x + 8}" y="{y + 12}" class="mark" fill="{colour}">{kind}</text>'
    tab = f'<path d="M{x} {y}h15v13h-15z" fill="#ffffff"/>'
    frame = f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" class="frame" stroke="{colour}"/>'
    return body, tab + frame + letter


def scale_key(max_visits: float) -> str:
    """The colour scale with its ticks, as HTML."""
    decades = range(round(math.log10(MIN_VISITS)), math.floor(math.log10(max_visits)) + 1)
    stops = ", ".join(_shade(index / (len(_SHADES) - 1)) for index in range(len(_SHADES)))
    ticks = "".join(
        f'<span style="left:{100 * (_depth(10.0**d, max_visits) or 0):.1f}%">{10.0**d:g}</span>' for d in decades
    )
    return f'<div class="scale"><div style="background:linear-gradient(to right, {stops})"></div><p>{ticks}</p></div>'


def _depth(visits: float, max_visits: float) -> float | None:
    """Position on the colour scale, from 0 at `MIN_VISITS` to 1 at `max_visits`; None below the scale."""
    if visits < MIN_VISITS:
        return None
    return min(1.0, math.log(visits / MIN_VISITS) / math.log(max_visits / MIN_VISITS))


def _shade(depth: float | None) -> str:
    if depth is None:
        return "#ffffff"
    position = depth * (len(_SHADES) - 1)
    index = min(int(position), len(_SHADES) - 2)
    fraction = position - index
    return "#" + "".join(
        f"{round(a + (b - a) * fraction):02x}" for a, b in zip(_SHADES[index], _SHADES[index + 1], strict=True)
    )


def _short(visits: float) -> str:
    """About two digits, to fit in a cell."""
    return f"{visits:.0f}" if visits >= 9.95 else f"{visits:.1f}" if visits >= 0.995 else f"{visits:.2f}".lstrip("0")
