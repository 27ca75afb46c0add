"""Errors for a name that does not exist, with the nearest one that does."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """One line: what is unknown, the nearest right name, and all of them if they are few.

    Example: `unknown("agent", "mgg", ["mg", "mvo"])` gives
    "unknown agent 'mgg'. Did you mean 'mg'? Known: mg, mvo."
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listing = f" Known: {', '.join(names)}." if len(names) <= 20 or not near else ""
    return f"unknown {kind} {name!r}.{hint}{listing}"
