"""Measures of one's own: their values, their intervals, and where they are shown."""

import json

import numpy as np
import pytest

import steadyrl
from steadyrl.evaluation.risk_report import RiskReport, measure_risk

CART = "CartPole-v1"
R = np.random.default_rng(3).exponential(size=60)


def in_place(returns):
    """A function that is rude to its argument."""
    returns.sort()
    return returns[0]


def test_a_metric_has_the_interval_of_the_measure_that_it_is():
    report = RiskReport.from_returns(R, metrics={"own": lambda R: R.mean(), "loss_rate": lambda R: (R < 1).mean()})
    assert report.measures["own"] == pytest.approx(report.mean)
    value, low, high = report.measures["loss_rate"]
    assert value == (R < 1).mean()
    # The normal approximation of a share.
    error = (value * (1 - value) / 60) ** 0.5
    assert (low, high) == pytest.approx((value - 1.96 * error, value + 1.96 * error), abs=0.04)


def test_returns_are_not_changed_and_equal_ones_have_no_interval():
    np.testing.assert_array_equal(RiskReport.from_returns(R, metrics={"first": in_place}).returns, R)
    constant = RiskReport.from_returns([2.0] * 5, metrics={"sum": np.sum})
    assert constant.measures["sum"] == (10, 10, 10)


def test_metrics_are_shown_with_the_others():
    report = steadyrl.evaluate(
        lambda seen: int(seen[2] > 0), CART, episodes=20, gamma=0.9, metrics={"short": lambda R: (R < 40).mean()}
    )
    assert report.measures["short"].value == (report.returns < 40).mean()
    assert report.discounted.measures["short"].value == 1
    assert json.loads(json.dumps(report.to_dict()))["measures"]["short"]["low"] == report.measures["short"].low
    assert str(report.measures["short"]) in str(report)


def test_metrics_are_compared():
    policies = (lambda seen: int(seen[2] > 0)), (lambda seen: 0)
    compared = steadyrl.compare(*policies, CART, episodes=20, metrics={"top": lambda R: np.quantile(R, 0.9)})
    a, b = (np.quantile(report.returns, 0.9) for report in (compared.a, compared.b))
    assert compared.measures["top"].value == pytest.approx(a - b)
    assert compared.measures["top"].low > 0
    assert compared.better["top"] is None  # Nobody said that more of it is better.
    assert "top" in str(compared)
    again = steadyrl.Comparison.of(compared.a, compared.b)
    assert again.measures == {}
    assert again.mean == compared.mean


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"mean": np.mean}, ValueError, "there is a measure 'mean' already"),
        ({"cvar:0.2": np.mean}, ValueError, "there is a measure 'cvar:0.2' already"),
        ({"maximum": np.max}, ValueError, "there is a measure 'maximum' already"),
        ({"": np.mean}, TypeError, "'' is not a name"),
        ({"x": 3}, TypeError, r"metrics\['x'\] is 3: pass a function"),
        ([np.mean], TypeError, "pass a dict"),
        ({"x": lambda R: R}, ValueError, r"metrics\['x'\] returned .* for 60 returns: return a number"),
        ({"x": lambda R: None}, ValueError, "return a number"),
        ({"x": lambda R: R.mean() / 0 * 0}, ValueError, "returned nan for the returns of all episodes"),
    ],
)
def test_what_is_no_metric(metrics, error, message):
    with pytest.raises(error, match=message):
        RiskReport.from_returns(R, metrics=metrics)


def test_a_metric_without_a_value_for_some_resamples_has_no_interval():
    """In a resample without a loss, the mean loss is not a number."""
    few = np.array([-1.0, 2, 3, 4])
    report = RiskReport.from_returns(few, metrics={"loss": lambda R: R[R < 0].sum() / (R < 0).sum()})
    assert report.measures["loss"].value == -1
    assert np.isnan(report.measures["loss"].low)
    assert report.to_dict()["measures"]["loss"]["low"] is None
    assert report.mean == measure_risk(few, 0).mean
