"""The records of a run's metrics.jsonl or evaluations.jsonl, checked: anybody may have written the file."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steadyrl.base.parsing import parse_json

LARGEST = 1e150
"""Larger numbers count as infinite: their squares cannot be summed."""
COUNTERS = ("episodes", "timesteps")
"""Whole numbers that never decrease from one record to the next."""


class Records(NamedTuple):
    """The content of a file."""

    records: list[dict[str, float]]
    """Name -> number; NaN for a number that is not finite."""
    not_finite: frozenset[str]
    """The names of such numbers."""


def validated_records(path: Path) -> Records:
    """The records of a file; none if it does not exist. A `ValueError` says in which line it is damaged.

    A last line without an end is what a process was writing when it was read or killed: that is no damage.
    """
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    records: list[dict[str, float]] = []
    not_finite: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = parse_json(line)
            _check(found, records[-1] if records else {})
        except ValueError as error:
            if number == len(lines) and isinstance(error, json.JSONDecodeError) and line.startswith(b"{"):
                break
            reason = "it is not JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else f"{error}"
            raise ValueError(f"{path.name}, line {number}: {reason.rstrip('.')}.") from None
        record = {name: value if name in COUNTERS else _finite(value) for name, value in found.items()}
        not_finite |= {name for name, value in record.items() if math.isnan(value)}
        records.append(record)
    return Records(records, frozenset(not_finite))


def _check(record: Any, before: Mapping[str, float]) -> None:
    """An error unless the record has numbers alone, and counters that go on from those of the one `before`."""
    if not isinstance(record, dict):
        raise ValueError(f"{reprlib.repr(record)} is not a JSON object")
    for name, value in record.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{reprlib.repr(name)} is {reprlib.repr(value)}, not a number")
    if "episodes" not in record:
        raise ValueError("it has no 'episodes'")
    for name in COUNTERS:
        value, least = record.get(name, 0), before.get(name, 0)
        if name in record and (not isinstance(value, int) or not least <= value <= 2**53):
            raise ValueError(f"'{name}' is {reprlib.repr(value)}, not a whole number from {least} to {2**53}")


def _finite(value: float) -> float:
    return float(value) if abs(value) <= LARGEST else math.nan
