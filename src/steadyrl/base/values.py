"""Values as the command line writes them."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

from steadyrl.base.parsing import parse_json

_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def read_value(text: str) -> Any:
    """The value that a text of the command line means: the same for settings and for options of environments.

    True, False and None in any capitals, and null; numbers, also as 10_000 or 1e4; lists and tables as JSON or Python
    writes them, with lists for tuples; text, which may be quoted. Only ValueError is raised: for numbers and nesting
    out of bounds.
    """
    text = text.strip()
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if (number := _number(text)) is not None:
        return number
    if not text.startswith(("[", "(", "{", '"', "'")):
        return text
    try:
        return parse_json(text)
    except json.JSONDecodeError:
        pass
    try:
        # By way of JSON: run folders record it, and tuples are lists there.
        return json.loads(json.dumps(ast.literal_eval(text)))
    except (SyntaxError, TypeError, ValueError):
        return text
    except (MemoryError, RecursionError):
        raise ValueError("it is nested too deeply.") from None


def _number(text: str) -> int | float | None:
    """The number; None if it is none, or one that is not finite by name."""
    if not text or text.lstrip("+-")[:1] not in tuple("0123456789."):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        raise ValueError("the number is too large.")
    return int(text) if text.lstrip("+-").replace("_", "").isdecimal() else value
