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
    except ValueError as error:
        raise _without_advice(error) from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None
    except ValueError as error:
        raise _without_advice(error) from None


def _without_advice(error: ValueError) -> ValueError:
    """The error itself, unless it is Python's on numbers of thousands of digits, which advises programmers."""
    return ValueError("a number has too many digits.") if "set_int_max_str_digits" in str(error) else error
