"""Pages in Markdown: tables, wrapped prose, and the versions that a result was made with."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from textwrap import fill

WIDTH = 100


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int | None = None) -> str:
    """A table whose first `left` columns, by default all, are aligned left, and the others right."""
    left = len(head) if left is None else left
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wrap(page: str) -> str:
    """The page with prose and list items in lines of at most WIDTH characters; all else stays as it is."""
    return "\n\n".join(map(_wrap_paragraph, page.strip("\n").split("\n\n"))) + "\n"


def _wrap_paragraph(text: str) -> str:
    if text[0] == "-":
        items = text.removeprefix("- ").split("\n- ")
        return "\n".join(fill(f"- {item}", WIDTH, subsequent_indent="  ", break_on_hyphens=False) for item in items)
    return text if text[0] in "|#! " else fill(text, WIDTH, break_on_hyphens=False)


def provenance() -> dict[str, str]:
    """The date and the versions of Python and the libraries, by name."""
    libraries = {name: version(name) for name in ("steadyrl", "jax", "numpy", "scipy")}
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "python": platform.python_version(), **libraries}
