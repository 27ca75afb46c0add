"""Lambdas that are chosen automatically, for frontiers that are known."""

import pytest

from steadyrl.evaluation.frontier import FrontierPoint
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.runs.frontier_auto import next_aversion, unit


def point(aversion, mean, risk, error=0.1):
    estimates = [Estimate(x, x - error, x + error) for x in (mean, risk, 2 * risk, mean - risk)]
    return FrontierPoint("mg", aversion, *estimates, seeds=1, episodes=2)


def chosen(policy, most=9):
    """The lambdas in order, and the points."""
    points = [point(0.0, *policy(0.0))]
    while (aversion := next_aversion(points, most)) is not None:
        points.append(point(aversion, *policy(aversion)))
    return [p.risk_aversion for p in points]


def jump(aversion):
    """Two policies, as in the maze; the safe one from lambda 0.8 on."""
    return (10.0, 0.5) if aversion > 0.8 else (12.0, 6.7)


def smooth(aversion):
    """Risk falls for ever, but less and less."""
    return 10 + 2 / (1 + aversion), 8 / (1 + aversion) ** 2


def test_it_goes_on_to_double_until_the_risk_falls_and_no_further():
    assert chosen(jump)[:4] == [0, 0.25, 0.5, 1]
    tried = chosen(jump, most=12)
    assert tried[4] == 2  # The risk had fallen, so one more doubling shows whether it falls further.
    assert max(tried) == 2
    # The gap from 0.5 to 1 is filled until its ends are told apart no more.
    between = sorted(aversion for aversion in tried if 0.5 < aversion < 1)
    assert between
    assert min(abs(aversion - 0.8) for aversion in between) < 0.05
    assert len(tried) <= 12


def test_the_widest_gaps_are_filled():
    tried = chosen(smooth, most=8)
    assert len(tried) == 8
    assert tried[:5] == [0, 0.25, 0.5, 1, 2]
    assert tried[5] == 0.125  # From 0 to 0.25 the mean falls by 0.4 and the risk by 2.9: the widest gap.
    assert len(set(tried)) == 8


def test_it_stops_where_nothing_changes():
    assert chosen(lambda aversion: (5.0, 0.0)) == [0, 0.25, 0.5, 1, 2]  # Half of nine doublings: the risk never fell.
    riskless = [point(0.0, 5, 0, error=0), point(0.25, 5, 0, error=0)]
    assert next_aversion(riskless, 9) is None


def test_the_unit_of_lambda():
    neutral = point(0.0, 12, 6.72)
    assert unit(True, neutral) == 1
    assert unit(False, neutral) == pytest.approx(6.72 / (2 * 6.72) ** 2)
    assert unit(False, point(0.0, 12, 0)) == 1
    assert next_aversion([neutral], 9, scale=0.04) == 0.01
