"""Ranges of lambda as people write them."""

import numpy as np
import pytest

from steadyrl.runs.risk_aversions import (
    aversions_of,
    bracket_of,
    default_range,
    has_risk_aversion,
    in_units_of_return,
    penalized_measure,
    penalty,
)


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("0:3:9", (0, 0.375, 0.75, 1.125, 1.5, 1.875, 2.25, 2.625, 3)),
        ("0.01:1:3:log", (0.01, 0.1, 1)),
        ("0:1:3:linear", (0, 0.5, 1)),
        ("0.5", (0.5,)),
        ("2:2:1", (2,)),
        (" 0, 0.5,1 ", (0, 0.5, 1)),
        (0.7, (0.7,)),
        ([1, 0.5], (1, 0.5)),
    ],
)
def test_ranges(given, values):
    assert aversions_of(given) == pytest.approx(values)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("3:0:9", "low end 3 is not below the high end 0"),
        ("1:1:2", "not below"),
        ("0:3:0", "count 0 is no whole number"),
        ("0:3:1", "one value cannot span"),
        ("0:3:x", "count x"),
        ("0:3:99999999999999999999", "no whole number"),
        ("0:3", "that is no range"),
        ("0:3:5:square", "that is no range"),
        ("0:3:5:log", "above 0"),
        ("-1:3:5", "at least 0"),
        ("nan", "finite"),
        ("a,b", "a is not a number"),
        ("", "empty"),
        ([], "empty"),
        ("1,1", "1 is given twice"),
        (range(2000), "at most 1,000"),
        ([None], "not a number"),
    ],
)
def test_mistakes(given, reason):
    with pytest.raises(ValueError, match=reason):
        aversions_of(given)


def test_brackets():
    assert bracket_of("0:2", "x") == bracket_of((0, 2), "x") == bracket_of(["0", 2.0], "x") == (0, 2)
    for wrong in ("2", "2:2", "2:1", "0:1:2", "a:b", "-1:1"):
        with pytest.raises(ValueError, match=r"^x"):
            bracket_of(wrong, "x")


def test_tamar_is_judged_by_what_is_above_its_threshold():
    returns = np.array([-1.0, 4, 4, 4])  # Variance 6.25.
    assert penalty("mvo", {}, returns) == pytest.approx(6.25)
    assert penalty("tamar", {"threshold": 2}, returns) == pytest.approx(4.25**2)
    assert penalty("tamar", {}, returns) == 0  # Below 50.
    assert penalty("tamar", {}, 10 * returns) == pytest.approx(575**2)


def test_defaults_follow_the_units_of_the_risk():
    assert [has_risk_aversion(agent) for agent in ("mg", "mvo", "reinforce", "dqn")] == [True, True, False, False]
    assert default_range("mg", {}) == default_range("mean_risk", {}) == (0, 0.5, 1, 1.5, 2)
    assert default_range("mvo", {}) == default_range("mean_risk", {"measure": "variance"}) == (0.001, 0.01, 0.1, 1)


@pytest.mark.parametrize(
    ("agent", "settings", "linear", "value"),
    [
        ("mg", {}, True, 1.25),
        ("mvo", {}, False, 6.25),
        ("mean_risk", {}, True, 1.25),
        ("mean_risk", {"measure": "variance"}, False, 6.25),
        ("mean_risk", {"measure": "semivariance"}, False, 3.75**2 / 3),
        ("mean_risk", {"measure": "cvar", "alpha": 0.5}, True, -1.5),
    ],
)
def test_an_agent_is_judged_by_the_measure_that_it_penalizes(agent, settings, linear, value):
    assert in_units_of_return(agent, settings) == linear
    assert penalized_measure(agent, settings).value([-1, 4, 4, 4]) == pytest.approx(value)
