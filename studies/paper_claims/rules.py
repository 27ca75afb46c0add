"""Verdicts: a claim is a list of conditions on measured numbers, and a condition is true, false or open.

A condition is open if a method has fewer than five seeds, or if an interval leaves it open. A claim holds if all its
conditions are true with the printed settings, and does not hold if one of them is false with these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steadyrl.reports.seed_statistics import CONCLUSIVE_SEEDS
from studies.paper_claims.measured import Measured, Source

HOLDS, ONLY, OTHER = "holds", "holds as printed only", "holds with other settings"
FAILS, OPEN, NOT_RUN = "does not hold", "inconclusive", "not run yet"
VERDICTS = (HOLDS, ONLY, OTHER, FAILS, OPEN, NOT_RUN)
KINDS = ("above", "below", "more", "less", "at_least", "apart")
SHARED = "lambdas that both methods have tried"
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
    printed: bool = True
    """Whether the settings are those that the paper prints."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The methods that were compared, each once."""
        by_measure = [shown for (_, measure), shown in self.numbers.items() if measure != SHARED]
        return tuple(dict.fromkeys(title for shown in by_measure for title in shown))


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    verdict: str
    tried: tuple[Tried, ...] = ()
    """With the printed settings, then with others, as far as the runs exist."""


def judge(claim: Claim, source: Source | None, choices: Sequence[Mapping[str, str]]) -> Judged:
    """The verdict; `choices` map roles to methods, the first with the printed settings."""
    found: list[Tried] = []
    for place, methods in enumerate(choices):
        try:
            tried = try_claim(claim, source, methods, place == 0) if source is not None else None
        except NotRunError:
            continue
        if tried is not None and all(tried.numbers != other.numbers for other in found):
            found.append(tried)
    return Judged(claim, _verdict(found), tuple(found))


def _verdict(found: Sequence[Tried]) -> str:
    if not found:
        return NOT_RUN
    printed = [tried.answer for tried in found if tried.printed]
    others = [tried.answer for tried in found if not tried.printed]
    if True in printed:
        return ONLY if False in others else HOLDS
    if True in others:
        return OTHER
    return FAILS if False in printed else OPEN


def try_claim(claim: Claim, source: Source, methods: Mapping[str, str], printed: bool = True) -> Tried:
    """All conditions of a claim, with these methods; a `NotRunError` if one of them has no run."""
    answers, numbers, seeds = [], {}, []
    for condition in claim.conditions:
        judged = _Judging(condition, source, methods)
        answers.append(judged.apart() if condition.kind == "apart" else judged.compared())
        for key, shown in judged.numbers.items():
            numbers.setdefault(key, {}).update(shown)
        seeds += judged.seeds
    return Tried(conjunction(answers), numbers, tuple(sorted(set(seeds))), printed)


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
        """Whether some lambda works with one method and fails with another.

        Methods are compared at the lambdas that both have tried: open if there are none, or if too little is known
        about them; false if all pairs of methods agree at all lambdas that they share.
        """
        c = self.condition
        methods = [self.methods.get(role, role) for role in (c.method, *c.than)]
        working = {method: self._working(method) for method in methods}
        answers = []
        for one, other in itertools.combinations(methods, 2):
            shared = sorted(working[one].keys() & working[other].keys())
            answers.append(_differ(working[one], working[other], shared))
            shown = self.numbers.setdefault((c.variant, SHARED), {})
            shown[f"{self.titles[one]} and {self.titles[other]}"] = _listed(shared)
        return disjunction(answers)

    def _working(self, method: str) -> dict[float, bool | None]:
        """Lambda -> whether it works with a method: true, false, or open."""
        c = self.condition
        by_measure = {name: self.source.sweep(c.variant, method, name) for name in WORKS}
        tried = sorted(set.intersection(*(set(found) for found in by_measure.values())))
        if not tried:
            raise NotRunError(method)
        self.seeds += [found[x].seeds for found in by_measure.values() for x in tried]
        works = {
            x: conjunction(compare(kind, by_measure[name][x], limit) for name, (kind, limit) in WORKS.items())
            for x in tried
        }
        for answer, title in {True: "work", None: "are open", False: "fail"}.items():
            shown = self.numbers.setdefault((c.variant, f"lambdas that {title}"), {})
            shown[self.titles[method]] = _listed(x for x in tried if works[x] is answer)
        return works


def _differ(
    one: Mapping[float, bool | None], other: Mapping[float, bool | None], shared: Sequence[float]
) -> bool | None:
    """Whether one of the shared lambdas works with one method and fails with the other; open if none is shared."""
    answers = [None if None in (one[x], other[x]) else one[x] != other[x] for x in shared]
    return disjunction(answers) if answers else None


def _listed(lambdas: Iterable[float]) -> str:
    return ", ".join(f"{x:g}" for x in lambdas) or "none"


def disjunction(answers: Iterable[bool | None]) -> bool | None:
    """True if one answer is, else open if one is, else false."""
    answers = list(answers)
    if True in answers:
        return True
    return None if None in answers else False


def conjunction(answers: Iterable[bool | None]) -> bool | None:
    """False if one answer is, else open if one is, else true."""
    answers = list(answers)
    if False in answers:
        return False
    return None if None in answers else True


def compare(kind: str, own: Measured, value: float, other: Measured | None = None) -> bool | None:
    """Whether a comparison is true for all values within the intervals, for none (False), or for some (None)."""
    if any(one is not None and one.seeds < CONCLUSIVE_SEEDS for one in (own, other)):
        return None
    if kind in ("below", "less"):
        opposite = {"below": "above", "less": "more"}[kind]
        return compare(opposite, _negative(own), -value, None if other is None else _negative(other))
    if kind == "at_least":
        assert other is not None
        low, high = (end - (1 - value) * abs(end) for end in (other.low, other.high))
        return True if own.low >= high else False if own.high < low else None
    low, high = (value, value) if other is None else (other.low, other.high)
    return True if own.low > high else False if own.high <= low else None


def _negative(one: Measured) -> Measured:
    return one._replace(value=-one.value, low=-one.high, high=-one.low)
