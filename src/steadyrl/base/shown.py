"""Values and text of unknown origin in messages."""

from __future__ import annotations

from typing import Any


def shown(value: Any, most: int = 80, quotes: bool = True) -> str:
    """A value as part of a message: its `repr`, for text with `quotes` or without, on one line and not too long."""
    try:
        text = " ".join((repr(value) if quotes or not isinstance(value, str) else value).split())
    except Exception:  # Such as a number with too many digits for Python to write, or a `repr` that fails.
        return f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable(text: str) -> str:
    """On one line, with control characters and what cannot be encoded replaced by question marks."""
    return "".join(character if character.isprintable() else "?" for character in text)
