"""JSON and TOML from files that anybody may have written: if malformed, a `ValueError` and no other exception."""

from __future__ import annotations

import json
import tomllib
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None
