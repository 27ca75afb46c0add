"""Returns that were logged elsewhere: a column of a CSV file."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.names import unknown
from steadyrl.base.shown import shown

DELIMITERS = ",;\t"
COMMENT = "#"
"""Lines that begin with it are skipped, such as the first one of a Monitor file of Stable-Baselines3."""


def read_returns(path: Path, column: str | None = None) -> NDArray[np.float64]:
    """[n]: the return of each episode, from the only column of a file or the one that is named.

    The first line may name the columns. Where it does not, a column may be chosen by its number, from 1 on.
    """
    numbered = _lines(path)
    if not numbered:
        raise ValueError(f"{path} is empty: a line with a return for each episode is needed.")
    delimiter = next((mark for mark in DELIMITERS if mark in numbered[0][1]), DELIMITERS[0])
    rows = [(number, _cells(line, delimiter)) for number, line in numbered]
    first = rows[0][1]
    has_header = not all(map(_is_number, first))
    names = first if has_header else [str(place + 1) for place in range(len(first))]
    place = _place(path, names, column)
    rows = rows[1:] if has_header else rows
    if len(rows) < 2:
        raise ValueError(f"{path}: risk is how returns differ, so at least 2 are needed, and there are {len(rows)}.")
    return np.array([_value(path, number, cells, place, names[place]) for number, cells in rows])


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines with something in them, and their numbers."""
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise FileNotFoundError(f"{path}: {what}. Name a CSV file of returns.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file: name a CSV file of returns.") from None
    lines = [(k + 1, line) for k, line in enumerate(text.splitlines())]
    return [(number, line) for number, line in lines if line.strip() and not line.startswith(COMMENT)]


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]


def _is_number(text: str) -> bool:
    """Also where it is not a finite one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _place(path: Path, names: list[str], column: str | None) -> int:
    if column is not None:
        if column not in names:
            raise ValueError(f"{path}: {unknown('column', column, names)}")
        return names.index(column)
    if len(names) > 1:
        listed = shown(", ".join(names), 100, quotes=False)
        raise ValueError(f"{path} has {len(names)} columns ({listed}): name that of the returns with --column.")
    return 0


def _value(path: Path, number: int, cells: list[str], place: int, name: str) -> float:
    text = cells[place] if place < len(cells) else ""
    if not _is_number(text) or not math.isfinite(float(text)):
        found = shown(text, 40) if text else "nothing"
        raise ValueError(f"{path}, line {number}: a finite return is needed in column {name}, and there is {found}.")
    return float(text)
