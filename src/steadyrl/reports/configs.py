"""The config.json of a run, checked: anybody may have written the file."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyrl.training.run_files import CONFIG
from steadyrl.training.run_folder import is_config, read_config

MAX_DEPTH = 20
"""Lists and objects within each other."""
NOT_A_RUN = f"{CONFIG} does not describe a steadyrl run"


def validated_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run, with the types that a report reads; a `ValueError` says what is wrong with it."""
    try:
        config = read_config(folder)
    except (ValueError, OSError):  # Not JSON, not a JSON object, or not readable.
        raise ValueError(NOT_A_RUN) from None
    if _is_deep(config):
        raise ValueError(f"{CONFIG} is nested more than {MAX_DEPTH} levels deep")
    if not is_config(config):
        raise ValueError(NOT_A_RUN)
    for name, (value, fits, needed) in _parts(config).items():
        if not fits(value):
            raise ValueError(f"{CONFIG}: {name} is {reprlib.repr(value)}, not {needed}")
    return config


def _parts(config: dict[str, Any]) -> dict[str, tuple[Any, Callable[[Any], bool], str]]:
    """Name -> the value, how it is checked, and what is needed."""
    return {
        "seed": (config["seed"], _is_seed, f"a whole number from 0 to {2**32 - 1}"),
        "env.id": (config["env"].get("id"), lambda value: isinstance(value, str), "text"),
        "env.options": (config["env"].get("options"), _is_perhaps_object, "an object"),
        "budget": (config.get("budget"), _is_perhaps_object, "an object"),
        "versions": (config.get("versions"), _is_perhaps_object, "an object"),
    }


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _is_perhaps_object(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_deep(value: Any, depth: int = 0) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return depth == MAX_DEPTH or any(_is_deep(item, depth + 1) for item in items)
