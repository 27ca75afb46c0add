"""Choosing lambdas for a frontier: first how far they reach, then where points are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from steadyrl.evaluation.frontier import FrontierPoint
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.risk.pareto import dominated
from steadyrl.runs.risk_aversions import rounded

FIRST = 0.25
"""The first lambda above 0, times the `unit`."""
DIGITS = 3
NARROW = 1.1
"""Lambdas whose ratio is smaller are not told apart."""


def unit(in_units_of_return: bool, neutral: FrontierPoint) -> float:
    """The lambda at which the risk of the risk-neutral policy is penalized with as much as its Gini deviation.

    That is 1 for risks in the units of the return. A variance is compared with the Gini deviation of the same policy:
    lambda V = D.
    """
    variance = neutral.standard_deviation.value**2
    if in_units_of_return or variance == 0:
        return 1.0
    return neutral.gini_deviation.value / variance


def next_aversion(points: Sequence[FrontierPoint], most: int, scale: float = 1.0) -> float | None:
    """The next lambda to train, given the points of one agent so far, the risk-neutral one included; None to stop.

    Lambda doubles, from `FIRST` times `scale`, until the Gini deviation stops falling by more than its interval, or
    half of the `most` lambdas are used. Then the widest gaps between neighbours are filled.
    """
    ordered = sorted(points, key=lambda point: point.risk_aversion or 0.0)
    if len(ordered) >= most:
        return None
    last = ordered[-1].risk_aversion or 0.0
    if len(ordered) == 1:
        return rounded(FIRST * scale, DIGITS)
    if len(ordered) <= max(most // 2, 2) and _still_falls(ordered):
        return rounded(2 * last, DIGITS)
    return _in_widest_gap(ordered)


def falls(before: Estimate, after: Estimate) -> bool:
    """Whether a value is lower by more than the interval of the one before it."""
    return after.value < before.low


def _still_falls(ordered: Sequence[FrontierPoint]) -> bool:
    """Whether doubling lambda once more may lower the risk: it has not fallen at all yet, or did so the last time."""
    risks = [point.gini_deviation for point in ordered]
    if risks[-1].high <= 0:
        return False
    has_fallen = any(falls(risks[0], later) for later in risks[1:])
    return not has_fallen or falls(risks[-2], risks[-1])


def _in_widest_gap(ordered: Sequence[FrontierPoint]) -> float | None:
    """A lambda between the two neighbours that are furthest apart, in mean and risk together.

    Gaps on the frontier come before those that lead away from it, to a dominated point.
    """
    mean = np.array([point.mean.value for point in ordered])
    risk = np.array([point.gini_deviation.value for point in ordered])
    behind = dominated(mean, risk)
    scale = max(np.ptp(mean), 1e-12), max(np.ptp(risk), 1e-12)
    gaps = []
    for (i, a), (j, b) in pairwise(enumerate(ordered)):
        low, high = a.risk_aversion or 0.0, b.risk_aversion or 0.0
        if _alike(a, b) or (low > 0 and high / low < NARROW) or (behind[i] and behind[j]):
            continue
        width = math.hypot((mean[i] - mean[j]) / scale[0], (risk[i] - risk[j]) / scale[1])
        gaps.append((not behind[i] and not behind[j], width, rounded(between(low, high), DIGITS)))
    known = {point.risk_aversion for point in ordered}
    gaps = [gap for gap in gaps if gap[2] not in known]
    return max(gaps)[2] if gaps else None


def between(low: float, high: float) -> float:
    """The geometric mean, or half of the high end if the low one is 0."""
    return math.sqrt(low * high) if low > 0 else high / 2


def _alike(a: FrontierPoint, b: FrontierPoint) -> bool:
    """Whether the intervals of both mean and risk overlap."""
    pairs = ((a.mean, b.mean), (a.gini_deviation, b.gini_deviation))
    return all(x.low <= y.high and y.low <= x.high for x, y in pairs)
