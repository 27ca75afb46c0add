"""The search for the lambda whose policy is the best within a limit: brackets, then bisection.

Not dual ascent: E - lambda D is convex in the law of returns, so between two neighbours on the hull every lambda is
answered by one of the two, and a multiplier that follows the limit would change sides for ever. Bisection ends when the
bracket is narrow, and the policy on the side that meets the limit is taken.

Of exact policies, mean and penalized risk fall with lambda. CVaR and other risks need not, nor does the mean of trained
ones: training has errors. So if neither end meets the limit, a few lambdas in between are tried before giving up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from steadyrl.base.names import choose
from steadyrl.evaluation.frontier import FrontierPoint, short
from steadyrl.runs.frontier_auto import between, falls
from steadyrl.runs.risk_aversions import rounded

MEASURES = {
    "gini_deviation": "gini_deviation",
    "gini": "gini_deviation",
    "gd": "gini_deviation",
    "standard_deviation": "standard_deviation",
    "std": "standard_deviation",
    "cvar_10": "cvar_10",
    "mean": "mean",
}
"""What users may call a measure -> its name."""
TITLES = {
    "gini_deviation": "Gini deviation",
    "standard_deviation": "standard deviation",
    "cvar_10": "CVaR 10 %",
    "mean": "mean",
}
MOST = 10
"""Lambdas that are tried, at most."""
PRECISION = 0.1
"""Width at which a bracket is narrow, relative to its upper end."""
DOUBLINGS = 3
"""How often the upper end is doubled, at most, if it does not bracket anything."""
BETWEEN = 4
"""Lambdas between the ends that are tried, at most, if none so far meets the limit."""
_DIGITS = 4

Train = Callable[[float, tuple[float, ...]], FrontierPoint]
"""`train(risk_aversion, neighbours)`: the policy for a lambda; within a bracket, `neighbours` are its two ends."""


@dataclass(frozen=True)
class Limit:
    """A bound of one measure that the interval of a policy has to respect."""

    measure: str
    bound: float
    at_most: bool

    @classmethod
    def of(cls, measure: str, at_most: float | None, at_least: float | None) -> Limit:
        """From what users give; an error for what no policy can meet."""
        name = choose("measure", measure, MEASURES)
        if (at_most is None) == (at_least is None):
            raise ValueError(f"{measure}: give at_most=... or at_least=..., one of the two.")
        is_risk = name in ("gini_deviation", "standard_deviation")
        if is_risk != (at_least is None):
            right, wrong = ("at most", "at least") if is_risk else ("at least", "at most")
            raise ValueError(f"{TITLES[name]}: a limit is {right} a number; {wrong} would ask for a worse policy.")
        bound = float(at_most if at_most is not None else at_least or 0.0)
        if not math.isfinite(bound):
            raise ValueError(f"{TITLES[name]}: the limit {bound} is no finite number.")
        if is_risk and bound < 0:
            raise ValueError(f"{TITLES[name]} at most {bound:g}: it is never below 0.")
        return cls(name, bound, is_risk)

    def __str__(self) -> str:
        return f"{TITLES[self.measure]} at {'most' if self.at_most else 'least'} {self.bound:g}"

    def met(self, point: FrontierPoint) -> bool:
        """Whether the whole interval is within the bound."""
        estimate = getattr(point, self.measure)
        return bool(estimate.high <= self.bound if self.at_most else estimate.low >= self.bound)

    def excess(self, point: FrontierPoint) -> float:
        """How far the interval is from meeting the limit."""
        estimate = getattr(point, self.measure)
        return float(estimate.high - self.bound if self.at_most else self.bound - estimate.low)

    @property
    def needs_risk_aversion(self) -> bool:
        """Whether large lambdas meet it; a limit of the mean is met by small ones."""
        return self.measure != "mean"

    def merit(self, point: FrontierPoint) -> float:
        """What is maximized within the limit: the mean; under a limit of the mean, minus the Gini deviation."""
        return point.mean.value if self.needs_risk_aversion else -point.gini_deviation.value


@dataclass
class Search:
    """What was tried, and what came out."""

    train: Train
    limit: Limit
    most: int = MOST
    precision: float = PRECISION
    doublings: int = DOUBLINGS
    tried: list[FrontierPoint] = field(default_factory=list)
    """In order."""
    reason: str = ""
    """Why it ended."""

    @property
    def best(self) -> FrontierPoint | None:
        """The best of the policies that meet the limit."""
        meeting = [point for point in self.tried if self.limit.met(point)]
        return max(meeting, key=self.limit.merit, default=None)

    def run(self, low: float, high: float | Callable[[FrontierPoint], float]) -> Search:
        """Search between two lambdas; the upper one may depend on the policy for the lower one."""
        first = self._try(low)
        if self.limit.needs_risk_aversion and self.limit.met(first):
            self.reason = f"Lambda {low:g}, the least risk-averse, already meets it: the search ends there."
            return self
        self._double(first, self._try(rounded(high(first) if callable(high) else high, _DIGITS)))
        if self.best is None:
            self._look_between()
        if (bracket := self._bracket()) is not None:
            self._bisect(*bracket)
        elif self.best is not None:
            self.reason = f"Lambda {self._ordered()[-1].risk_aversion:g}, the largest tried, still meets it."
        else:
            closest = min(self.tried, key=self.limit.excess)
            self.reason = (
                f"None of the {len(self.tried)} lambdas tried, up to {self._ordered()[-1].risk_aversion:g}, reaches "
                f"it; the closest is {closest.risk_aversion:g}, with {self._shown(closest)}."
            )
        return self

    def _double(self, before: FrontierPoint, last: FrontierPoint) -> None:
        """Double the upper end as long as more risk aversion may help."""
        for doubled in range(self.doublings):
            if len(self.tried) >= self.most or self._is_upper(last):
                return
            if self.limit.needs_risk_aversion:
                # Once in any case; after that only if no smaller lambda is closer to the limit.
                helps = not doubled or self.limit.excess(last) <= min(map(self.limit.excess, self.tried))
            else:
                helps = falls(before.gini_deviation, last.gini_deviation)
            if not helps:
                return
            before, last = last, self._try(rounded(2 * (last.risk_aversion or 0.0), _DIGITS))

    def _look_between(self) -> None:
        """Try lambdas between those that do not meet the limit, next to the one that is closest to it."""
        for _ in range(min(BETWEEN, self.most - len(self.tried))):
            gap = self._gap()
            if gap is None or self.limit.met(self._try(rounded(between(*gap), _DIGITS), gap)):
                return

    def _gap(self) -> tuple[float, float] | None:
        """The wider of the two gaps beside the closest point, or the one with the better other end; None if narrow."""
        closest = min(self.tried, key=self.limit.excess)
        gaps = []
        for pair in pairwise(self._ordered()):
            low, high = (point.risk_aversion or 0.0 for point in pair)
            is_wide = high - low > self.precision * high and rounded(between(low, high), _DIGITS) not in (low, high)
            if closest in pair and is_wide:
                ratio = round(high / low, 1) if low > 0 else math.inf
                gaps.append((ratio, -max(map(self.limit.excess, pair)), (low, high)))
        return max(gaps)[2] if gaps else None

    def _bracket(self) -> tuple[FrontierPoint, FrontierPoint] | None:
        """Neighbours between which the limit begins to be met, or ceases to be: those with the best policies."""
        found = [pair for pair in pairwise(self._ordered()) if self._is_upper(pair[1]) and not self._is_upper(pair[0])]
        if not found:
            return None
        return found[0] if self.limit.needs_risk_aversion else found[-1]

    def _is_upper(self, point: FrontierPoint) -> bool:
        """Whether it can be the upper end of a bracket: it meets a limit of risk, or not one of the mean."""
        return self.limit.met(point) == self.limit.needs_risk_aversion

    def _ordered(self) -> list[FrontierPoint]:
        return sorted(self.tried, key=lambda point: point.risk_aversion or 0.0)

    def _bisect(self, first: FrontierPoint, last: FrontierPoint) -> None:
        while True:
            low, high = first.risk_aversion or 0.0, last.risk_aversion or 0.0
            middle = rounded(between(low, high), _DIGITS)
            if high - low <= self.precision * high or middle in (low, high):
                self.reason = self._narrow(first, last)
                return
            if len(self.tried) >= self.most:
                self.reason = f"Stopped after {self.most} lambdas, between {low:g} and {high:g}."
                return
            point = self._try(middle, (low, high))
            if self._is_upper(point):
                last = point
            else:
                first = point

    def _narrow(self, first: FrontierPoint, last: FrontierPoint) -> str:
        """Why a narrow bracket ends the search: mostly because the frontier jumps there."""
        ends = f"lambda {first.risk_aversion:g} ({self._shown(first)}) and {last.risk_aversion:g} ({self._shown(last)})"
        a, b = (getattr(point, self.limit.measure) for point in (first, last))
        jumps = a.low > b.high or b.low > a.high
        what = f"The frontier jumps between {ends}" if jumps else f"The limit lies between {ends}"
        return f"{what}: the bracket is narrow, and the best policy that meets the limit is taken."

    def _try(self, aversion: float, neighbours: tuple[float, ...] = ()) -> FrontierPoint:
        self.tried.append(self.train(aversion, neighbours))
        return self.tried[-1]

    def _shown(self, point: FrontierPoint) -> str:
        estimate = getattr(point, self.limit.measure)
        return f"{TITLES[self.limit.measure]} {short(estimate.value)} [{short(estimate.low)}, {short(estimate.high)}]"
