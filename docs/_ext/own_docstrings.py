"""Docstrings as the API reference shows them.

Those of agents end before the list of their settings, which has a page of its own. `|x|` is an absolute value; in
reStructuredText it would be a substitution.
"""

from __future__ import annotations

import inspect
from typing import Any


def shorten(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx calls this with the docstring of everything that it documents."""
    from steadyrl.agents.agent import Agent

    if not (inspect.isclass(thing) and issubclass(thing, Agent) and "Settings:" in lines):
        return
    example = lines.index("Example:")
    code = lines[example + 1 : lines.index("Settings:")]
    lines[:] = [
        *lines[:example],
        ".. code-block:: python",
        *code,
        "",
        f"`All settings <settings.html#{thing.__name__.lower()}>`__.",
        "",
    ]


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Write `|` as such, but in code."""
    lines[:] = [line if line.startswith("    ") else _escaped(line) for line in lines]


def _escaped(line: str) -> str:
    """With a backslash before each `|` that is not between backticks."""
    parts = line.split("`")
    return "`".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; before napoleon, which reads sections such as `Example:`."""
    app.connect("autodoc-process-docstring", shorten, priority=100)
    app.connect("autodoc-process-docstring", escape_bars, priority=200)
    return {"parallel_read_safe": True}
