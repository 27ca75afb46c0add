"""Which of many episodes are filmed: by their rank among all returns, or by their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadyrl.base.shown import shown

Which = str | int | Sequence[str | int]
_KINDS = ("worst", "median", "best")


class Wanted(NamedTuple):
    """A part of `which`."""

    kind: str
    """"worst", "median", "best", or "episode" for one by its number."""
    number: int
    """Of episodes; of "episode", its number."""


class Selected(NamedTuple):
    """An episode that is filmed."""

    episode: int
    """Its number, from 0 on."""
    rank: int
    """Among all returns: 1 is the worst. Of equal returns, the earlier episode is ranked lower."""
    name: str
    """"worst", "median", "best", or "" if it was chosen otherwise."""


def parse_which(which: Any, episodes: int) -> list[Wanted]:
    """What `which` asks for; an error if it cannot be had from so many episodes."""
    parts = [which] if isinstance(which, str | int | np.integer) else list(which)
    if not parts:
        raise ValueError("which is empty: name what to film, such as 'worst:5' or ('worst', 'median', 'best').")
    return [_parse(part, episodes) for part in parts]


def _parse(part: Any, episodes: int) -> Wanted:
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        if not 0 <= part < episodes:
            raise ValueError(f"episode {part}: {episodes} episodes are played, numbered from 0. Raise episodes.")
        return Wanted("episode", int(part))
    kind, _, count = str(part).partition(":")
    number = count or "1"
    if kind not in _KINDS or not number.isdecimal() or (kind == "median" and count):
        raise ValueError(f"which={shown(part)}: use 'worst', 'median', 'best', 'worst:5', 'best:5' or a number.")
    if not 1 <= int(number) <= episodes:
        raise ValueError(
            f"{kind} {number}: {episodes} episodes are played. Ask for 1 to {episodes}, or raise episodes."
        )
    return Wanted(kind, int(number))


def select(wanted: Sequence[Wanted], returns: np.ndarray) -> list[Selected]:
    """The episodes that are wanted; the worst first among the worst, and the best first among the best."""
    n = len(returns)
    order = np.argsort(returns, kind="stable")  # Episodes from the worst on.
    rank_of = np.empty(n, int)
    rank_of[order] = np.arange(1, n + 1)
    ranks: list[int] = []
    for kind, number in wanted:
        if kind == "worst":
            ranks += range(1, number + 1)
        elif kind == "best":
            ranks += range(n, n - number, -1)
        else:
            ranks.append((n + 1) // 2 if kind == "median" else int(rank_of[number]))
    names = {(n + 1) // 2: "median", n: "best", 1: "worst"}
    return [Selected(int(order[rank - 1]), rank, names.get(rank, "")) for rank in ranks]
