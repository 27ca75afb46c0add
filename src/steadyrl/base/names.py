"""Names as people type them: the thing that is meant, or an error with the nearest name that exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def unknown(kind: str, name: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str:
    """One line: what is unknown, the nearest right name, and all of them if they are few.

    `also` maps other names of what is known, such as a symbol of the paper, to the right ones, or to "" for no hint.

    Example: `unknown("agent", "mgg", ["mg", "mvo"])` gives
    "unknown agent 'mgg'. Did you mean 'mg'? Known: mg, mvo."
    """
    names = sorted(known)
    near = nearest(name, names, also)
    hint = f" Did you mean {near!r}?" if near else ""
    listing = f" Known: {', '.join(names)}." if len(names) <= 24 else ""
    return f"unknown {kind} {name!r}.{hint}{listing}"


def nearest(name: str, known: Iterable[str], also: Mapping[str, str] | None = None, cutoff: float = 0.5) -> str | None:
    """The name that was probably meant, whatever its capitals; None if nothing is as near as `cutoff`, up to 1."""
    meant = {plain(other): right for other, right in (also or {}).items()}
    if plain(name) in meant:
        return meant[plain(name)] or None
    spelled = {plain(right): right for right in known}
    close = difflib.get_close_matches(plain(name), spelled, n=1, cutoff=cutoff)
    return spelled[close[0]] if close else None


def choose(kind: str, name: str, known: Mapping[str, T]) -> T:
    """What `name` stands for; capitals, dashes and underscores do not matter. An error if it is nothing."""
    spelled = {plain(right): value for right, value in known.items()}
    if plain(name) not in spelled:
        raise ValueError(unknown(kind, name, known))
    return spelled[plain(name)]


def plain(name: str) -> str:
    """A name without what people get wrong first: capitals, dashes and underscores."""
    return name.lower().replace("_", "").replace("-", "")


def split_number(text: str) -> tuple[str, float | None]:
    """A name and the number after its colon, if there is one: "cvar:0.2" is ("cvar", 0.2)."""
    name, colon, number = text.partition(":")
    if not colon:
        return name.strip(), None
    try:
        return name.strip(), float(number)
    except ValueError:
        raise ValueError(f"{text}: a number is needed after the colon, as in {name.strip()}:0.2.") from None
