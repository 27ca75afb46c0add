"""TOML files of unknown origin, and what their tables describe."""

from __future__ import annotations

import dataclasses
import reprlib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from steadyrl.base.names import unknown
from steadyrl.base.parsing import parse_toml

T = TypeVar("T")
_MAX_DEPTH = 20
"""Lists and tables within each other."""
_WORDS = {str: "text", int: "a whole number", bool: "true or false", dict: "a table", list: "a list"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file of unknown origin: numbers of 64 bits, text, lists and tables of them."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {str(error).rstrip('.')}.") from None
    for key, value in data.items():
        if problem := _not_plain(value):
            raise ValueError(f"{path}: {key}: {problem}")
    return data


def _not_plain(value: Any, depth: int = 1) -> str:
    """What is wrong with a value, whatever it is for; empty if nothing is."""
    if isinstance(value, dict | list):
        if depth == _MAX_DEPTH:
            return f"it is nested too deeply: {_MAX_DEPTH} levels are possible."
        items = value.values() if isinstance(value, dict) else value
        return next((problem for item in items if (problem := _not_plain(item, depth + 1))), "")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"{reprlib.repr(value)} is too large: whole numbers have 64 bits."
    if not isinstance(value, int | float | str):
        return f"{value}: dates and times cannot be used here. Write it as text."
    return ""


def part_of(table: Mapping[str, Any], key: str, kind: type[T], default: T | None = None, where: str = "") -> T:
    """The value of a key, of that type."""
    value = table.get(key, default)
    # Not isinstance: true and false are whole numbers in Python.
    if type(value) is not kind:
        raise ValueError(f"{where}{key}: {_WORDS[kind]} is needed, not {reprlib.repr(value)}.")
    return value


def from_table(cls: type[T], table: Any, where: str) -> T:
    """A dataclass from a table, whose keys are its fields."""
    if not isinstance(table, dict):
        raise ValueError(f"{where}: a table is needed, not {reprlib.repr(table)}.")
    hints, fields = typing.get_type_hints(cls), dataclasses.fields(cls)  # type: ignore[arg-type]
    for key in table:
        if key not in hints:
            raise ValueError(f"{where}: {unknown('key', key, hints)}")
    for field in fields:
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name in table or not optional:
            kind = hints[field.name]
            part_of(table, field.name, typing.get_origin(kind) or kind, where=f"{where}.")
    try:
        return cls(**table)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
