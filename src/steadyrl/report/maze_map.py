"""A maze with the visits of a method as a heat map, drawn in SVG."""

from __future__ import annotations

import html
import math

from steadyrl.envs.guarded_maze import Maze
from steadyrl.envs.guarded_maze.layout import FLOOR, GOAL, RED, START, WALL
from steadyrl.report import numerals
from steadyrl.report.playing import Array

CELL = 40
"""Units of the drawing; the page scales it."""
FEWEST = 0.01
"""Cells that are visited less than this often in an episode are left white."""
NUMBERED = 8
"""Mazes up to so wide have the number of visits written in their cells."""
_SHADES = ((239, 246, 252), (158, 202, 225), (66, 146, 198), (8, 81, 156), (8, 34, 84))
_MARKS = {START: ("start", "#1f2933"), GOAL: ("goal", "#2f8f4e"), RED: ("red", "#d64038")}


def maze_map(maze: Maze, visits: Array, most: float) -> str:
    """The drawing; the darkest shade is `most` visits an episode, on a logarithmic scale."""
    height, width = maze.grid.shape
    cells = [
        _cell(maze.grid[row, column], row, column, float(visits[row, column]), most, numbered=width <= NUMBERED)
        for row in range(height)
        for column in range(width)
    ]
    # The frames of start, goal and red come last, over the lines of their neighbours.
    drawn = "".join(body for body, _ in cells) + "".join(frame for _, frame in cells)
    box = f"-2 -2 {width * CELL + 4} {height * CELL + 4}"
    return f'<svg class="maze" viewBox="{box}" role="img" aria-label="visits of each cell">{drawn}</svg>'


def _cell(kind: str, row: int, column: int, visits: float, most: float, numbered: bool) -> tuple[str, str]:
    x, y = column * CELL, row * CELL
    if kind == WALL:
        return f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="wall"/>', ""
    depth = _depth(visits, most)
    name = "" if kind == FLOOR else f"{_MARKS[kind][0]}: "
    told = f"{name}{numerals.number(visits)} visits an episode"
    text = ""
    if numbered and depth is not None:
        ink = "#ffffff" if depth > 0.45 else "#1f2933"
        text = f'<text x="{x + CELL / 2:g}" y="{y + CELL / 2 + 6:g}" fill="{ink}">{_short(visits)}</text>'
    body = (
        f'<g><title>{html.escape(told)}</title><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" '
        f'fill="{_shade(depth)}" class="cell"/>{text}</g>'
    )
    if kind == FLOOR:
        return body, ""
    colour = _MARKS[kind][1]
    letter = f'<text x="{x + 8}" y="{y + 12}" class="mark" fill="{colour}">{kind}</text>'
    tab = f'<path d="M{x} {y}h15v13h-15z" fill="#ffffff"/>'
    frame = f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" class="frame" stroke="{colour}"/>'
    return body, tab + frame + letter


def scale_key(most: float) -> str:
    """The colours with their numbers, as HTML."""
    decades = range(round(math.log10(FEWEST)), math.floor(math.log10(most)) + 1)
    stops = ", ".join(_shade(index / (len(_SHADES) - 1)) for index in range(len(_SHADES)))
    ticks = "".join(f'<span style="left:{100 * (_depth(10.0**d, most) or 0):.1f}%">{10.0**d:g}</span>' for d in decades)
    return f'<div class="scale"><div style="background:linear-gradient(to right, {stops})"></div><p>{ticks}</p></div>'


def _depth(visits: float, most: float) -> float | None:
    """From 0 for `FEWEST` to 1 for `most`; None below."""
    if visits < FEWEST:
        return None
    return min(1.0, math.log(visits / FEWEST) / math.log(most / FEWEST))


def _shade(depth: float | None) -> str:
    if depth is None:
        return "#ffffff"
    place = depth * (len(_SHADES) - 1)
    index = min(int(place), len(_SHADES) - 2)
    part = place - index
    return "#" + "".join(
        f"{round(a + (b - a) * part):02x}" for a, b in zip(_SHADES[index], _SHADES[index + 1], strict=True)
    )


def _short(visits: float) -> str:
    """Two digits: as much as fits in a cell."""
    return f"{visits:.0f}" if visits >= 9.95 else f"{visits:.1f}" if visits >= 0.995 else f"{visits:.2f}".lstrip("0")
