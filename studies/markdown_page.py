"""Pages in Markdown: tables, wrapped prose, and the versions that a result was made with."""

from __future__ import annotations

import platform
import re
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

WIDTH = 100
_MARK = re.compile(r"\s*(%|#|>|[-+*] |\d+[.)](\s|$))")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int | None = None) -> str:
    """A table whose first `left` columns, by default all, are aligned left, and the others right."""
    left = len(head) if left is None else left
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wrap(page: str, width: int = WIDTH) -> str:
    """The page with prose and list items in lines of at most `width` characters; all else stays as it is."""
    return "\n\n".join(_wrap_paragraph(text, width) for text in page.strip("\n").split("\n\n")) + "\n"


def fill(text: str, width: int = WIDTH, indent: str = "") -> str:
    """A paragraph in lines of at most `width` characters, none of which begins as a list, comment or heading does.

    `indent` is that of the lines after the first.
    """
    for narrower in range(width, width - 30, -1):
        filled = textwrap.fill(text, narrower, subsequent_indent=indent, break_on_hyphens=False)
        if not any(_MARK.match(line) for line in filled.splitlines()[1:]):
            break
    return filled


def _wrap_paragraph(text: str, width: int) -> str:
    if text[0] == "-":
        items = text.removeprefix("- ").split("\n- ")
        return "\n".join(fill(f"- {item}", width, indent="  ") for item in items)
    return text if text[0] in "|#! " else fill(text, width)


def provenance() -> dict[str, str]:
    """The date and the versions of Python and the libraries, by name."""
    libraries = {name: version(name) for name in ("steadyrl", "jax", "numpy", "scipy")}
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "python": platform.python_version(), **libraries}
