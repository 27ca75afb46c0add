"""Verdicts: a claim is a list of conditions on measured numbers, and a condition is true, false or open.

A condition is open if a method has fewer than three seeds, or if an interval leaves it open. A claim holds if all its
conditions are true, and does not hold if one of them is false.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steadyrl.reports.seed_statistics import MIN_SEEDS
from studies.paper_claims.measured import Measured, Source

HOLDS, ONLY, OTHER = "holds", "holds as printed only", "holds with other settings"
FAILS, OPEN, NOT_RUN = "does not hold", "cannot be told", "not run yet"
VERDICTS = (HOLDS, ONLY, OTHER, FAILS, OPEN, NOT_RUN)
KINDS = ("above", "below", "more", "less", "at_least", "apart")
WORKS = {"goal": ("above", 0.9), "red visit": ("below", 0.1)}
"""When a lambda works in the maze: measure -> condition."""


class NotRunError(Exception):
    """A method of a condition has no run."""


@dataclass(frozen=True)
class Condition:
    """One comparison, of a method with a number or with other methods; methods are roles, such as "mg"."""

    kind: str
    method: str
    measure: str
    variant: str = ""
    """The only one by default."""
    value: float = math.nan
    """Of "above" and "below": the limit. Of "at_least": the share of the other's value."""
    than: tuple[str, ...] = ()
    than_variant: str = ""
    """That of the others, if it is another one."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of condition {self.kind!r}; known: {', '.join(KINDS)}")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper."""

    domain: str
    text: str
    paper: str
    """Where the paper says so."""
    figure: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Tried:
    """A claim with one choice of settings."""

    answer: bool | None
    numbers: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """(variant, measure) -> title of a method -> its number."""
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    verdict: str
    tried: tuple[Tried, ...] = ()
    """With the printed settings, then with others, as far as the runs exist."""


def judge(claim: Claim, source: Source | None, choices: Sequence[Mapping[str, str]]) -> Judged:
    """The verdict; `choices` map roles to methods, the first with the printed settings."""
    found: list[tuple[int, Tried]] = []
    for place, methods in enumerate(choices):
        try:
            tried = try_claim(claim, source, methods) if source is not None else None
        except NotRunError:
            continue
        if tried is not None and all(tried.numbers != other.numbers for _, other in found):
            found.append((place, tried))
    return Judged(claim, _verdict(found), tuple(tried for _, tried in found))


def _verdict(found: Sequence[tuple[int, Tried]]) -> str:
    if not found:
        return NOT_RUN
    place, first = found[0]
    others = [tried.answer for _, tried in found[1:]]
    if first.answer and place == 0:
        return ONLY if False in others else HOLDS
    if first.answer or True in others:
        return OTHER
    return FAILS if first.answer is False else OPEN


def try_claim(claim: Claim, source: Source, methods: Mapping[str, str]) -> Tried:
    """All conditions of a claim, with these methods; a `NotRunError` if one of them has no run."""
    answers, numbers, seeds = [], {}, []
    for condition in claim.conditions:
        judged = _Judging(condition, source, methods)
        answers.append(judged.apart() if condition.kind == "apart" else judged.compared())
        for key, shown in judged.numbers.items():
            numbers.setdefault(key, {}).update(shown)
        seeds += judged.seeds
    return Tried(conjunction(answers), numbers, tuple(sorted(set(seeds))))


class _Judging:
    """One condition, and the numbers that it was decided by."""

    def __init__(self, condition: Condition, source: Source, methods: Mapping[str, str]) -> None:
        self.condition, self.source, self.methods = condition, source, methods
        self.numbers: dict[tuple[str, str], dict[str, str]] = {}
        self.seeds: list[int] = []
        self.titles = {method.name: method.title for method in source.experiment.methods}

    def _get(self, role: str, variant: str) -> Measured:
        variant = variant or self.source.experiment.variants[0].name
        method = self.methods.get(role, role)
        found = self.source.get(variant, method, self.condition.measure)
        if found is None:
            raise NotRunError(method)
        self.numbers.setdefault((variant, self.condition.measure), {})[self.titles[method]] = str(found)
        self.seeds.append(found.seeds)
        return found

    def compared(self) -> bool | None:
        """The answer of all kinds but "apart"."""
        c = self.condition
        own = self._get(c.method, c.variant)
        if c.kind in ("above", "below"):
            return compare(c.kind, own, c.value)
        others = [self._get(role, c.than_variant or c.variant) for role in c.than]
        return conjunction(compare(c.kind, own, c.value, other) for other in others)

    def apart(self) -> bool | None:
        """Whether two methods have lambdas that work, and no lambda between those of both."""
        c, ranges = self.condition, []
        for method in (c.method, *c.than):  # Not roles: the study has methods of its own.
            by_measure = {name: self.source.sweep(c.variant, method, name) for name in WORKS}
            tried = set.intersection(*(set(found) for found in by_measure.values()))
            if not tried:
                raise NotRunError(method)
            works = [x for x in sorted(tried) if all(compare(k, by_measure[n][x], v) for n, (k, v) in WORKS.items())]
            self.seeds += [found[x].seeds for found in by_measure.values() for x in tried]
            shown = ", ".join(f"{x:g}" for x in works) or f"none of {len(tried)}"
            self.numbers.setdefault((c.variant, "lambdas that work"), {})[self.titles[method]] = shown
            ranges += [(works[0], works[-1])] if works else []
        pairs = itertools.combinations(ranges, 2)
        disjoint = [a[1] < b[0] or b[1] < a[0] for a, b in pairs]
        return any(disjoint) if disjoint else None


def conjunction(answers: Iterable[bool | None]) -> bool | None:
    """False if one answer is, else open if one is, else true."""
    answers = list(answers)
    if False in answers:
        return False
    return None if None in answers else True


def compare(kind: str, own: Measured, value: float, other: Measured | None = None) -> bool | None:
    """Whether a comparison is true for all values within the intervals, for none (False), or for some (None)."""
    if any(one is not None and one.seeds < MIN_SEEDS for one in (own, other)):
        return None
    if kind in ("below", "less"):
        opposite = {"below": "above", "less": "more"}[kind]
        return compare(opposite, _negative(own), -value, None if other is None else _negative(other))
    if kind == "at_least":
        assert other is not None
        low = high = other.value - (1 - value) * abs(other.value)
    else:
        low, high = (value, value) if other is None else (other.low, other.high)
    if own.low > high or (kind == "at_least" and own.low == high):
        return True
    return False if own.high <= low else None


def _negative(one: Measured) -> Measured:
    return one._replace(value=-one.value, low=-one.high, high=-one.low)
