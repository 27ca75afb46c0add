"""Text of unknown origin, such as the names of folders, for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """On one line, with control characters and what cannot be encoded replaced by question marks."""
    return "".join(character if character.isprintable() else "?" for character in text)
