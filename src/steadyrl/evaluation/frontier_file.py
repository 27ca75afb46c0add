"""Reading frontier.json, a file that anybody may have written: plain data of known types, or a ValueError."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steadyrl.base.parsing import parse_json

MAX_POINTS = 10_000
_DETAILS = {"command": str, "date": str, "versions": dict, "settings": dict, "limit": dict}


class FrontierData(NamedTuple):
    """What a file holds."""

    env: str
    env_options: dict[str, Any]
    points: list[dict[str, Any]]
    exact: list[dict[str, float]]
    details: dict[str, Any]


def read(path: Path, measures: Sequence[str]) -> FrontierData:
    """The content of a file; every point has these measures."""
    try:
        found = parse_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not a frontier: {error}") from None
    if not isinstance(found, dict) or not _is_list(found.get("points")) or not found["points"]:
        raise ValueError(f"{path} is not a frontier: it has no points.")
    try:
        return FrontierData(
            env=_of(str, found["env"]),
            env_options=_of(dict, found.get("env_options", {})),
            points=[_point(point, measures) for point in found["points"]],
            exact=[{name: _number(point[name]) for name in measures} for point in found.get("exact", [])],
            details={name: _of(kind, found[name]) for name, kind in _DETAILS.items() if name in found},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a frontier: {type(error).__name__} {error}.") from None


def _point(point: dict[str, Any], measures: Sequence[str]) -> dict[str, Any]:
    aversion = point["risk_aversion"]
    return {
        "agent": _of(str, point["agent"]),
        "risk_aversion": None if aversion is None else _number(aversion),
        **{name: {end: _number(point[name][end]) for end in ("value", "low", "high")} for name in measures},
        "seeds": _of(int, point["seeds"]),
        "episodes": _of(int, point["episodes"]),
        "runs": [_of(str, run) for run in point.get("runs", [])],
    }


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_POINTS


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a number is missing")
    return float(value)


def _of(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"a {kind.__name__} is missing")
    return value
