import json

import numpy as np
import pytest

from steadyrl.evaluation import risk_report
from steadyrl.evaluation.reported import REPORTED
from steadyrl.evaluation.risk_report import Estimate, RiskReport, measure_risk
from steadyrl.risk import MEASURES, RiskMeasure

SPREADS = ("standard_deviation", "variance", "gini_deviation")


def report_of(returns, discounted_returns=None, gamma=1.0, facts=None, seed=0):
    discounted_returns = returns if discounted_returns is None else discounted_returns
    return RiskReport.from_returns(returns, discounted_returns, gamma, facts or {}, seed)


def test_values_worked_by_hand():
    risk = measure_risk([1.0, 2.0, 3.0, 6.0], seed=0)
    assert risk.mean.value == 3
    assert risk.variance.value == pytest.approx(14 / 3)
    assert risk.standard_deviation.value == pytest.approx((14 / 3) ** 0.5)
    # Pairs differ by 1, 2, 5, 1, 4, 3: 16 in all, of which the mean over 6 pairs, halved.
    assert risk.gini_deviation.value == pytest.approx(16 / 12)
    assert risk.cvar_05.value == risk.cvar_10.value == 1
    assert (risk.minimum, risk.maximum) == (1, 6)


def test_cvar_averages_the_worst_shares():
    risk = measure_risk(np.arange(40.0), seed=0)
    assert risk.cvar_05.value == pytest.approx(0.5)
    assert risk.cvar_10.value == pytest.approx(1.5)


def test_intervals_cover_the_truth_as_often_as_they_claim(monkeypatch):
    """Exponential returns of mean 1: variance 1, Gini deviation 1/2, CVaR_10 = 1 + 9 ln 0.9 = 0.0518."""
    monkeypatch.setattr(risk_report, "RESAMPLES", 1000)
    rng = np.random.default_rng(0)
    truth = {"mean": 1.0, "gini_deviation": 0.5, "cvar_10": 1 + 9 * np.log(0.9)}
    risks = [measure_risk(rng.exponential(size=100), seed) for seed in range(200)]
    for name, true in truth.items():
        intervals = [getattr(risk, name) for risk in risks]
        coverage = np.mean([interval.low <= true <= interval.high for interval in intervals])
        assert 0.88 <= coverage <= 0.99, (name, coverage)


@pytest.mark.parametrize("n", [1000, 1001])
def test_both_kinds_of_interval_have_the_width_of_the_normal_one(n):
    R = np.random.default_rng(1).normal(size=n)
    mean = measure_risk(R, seed=0).mean
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * R.std(ddof=1) / n**0.5, rel=0.08)


def test_bca_follows_the_skew_that_percentiles_miss():
    """For a mean of skewed returns the BCa interval reaches further up than down."""
    mean = measure_risk(np.random.default_rng(2).exponential(size=50) ** 2, seed=0).mean
    assert mean.high - mean.value > 1.3 * (mean.value - mean.low)


@pytest.mark.parametrize("c", [0.1, -7.3, 0.0, 1e9])
def test_constant_returns_are_certain(c):
    risk = measure_risk([c] * 7, seed=0)
    for name in REPORTED:
        assert getattr(risk, name) == ((0, 0, 0) if name in SPREADS else (c, c, c))
    assert risk.minimum == risk.maximum == c


def test_a_measure_constant_over_the_resamples_is_certain():
    """Half the returns are 0, so the worst 5 % of any resample are 0; BCa gives NaN there."""
    risk = measure_risk([0.0] * 50 + [1.0] * 50, seed=0)
    assert risk.cvar_05 == (0, 0, 0)
    assert risk.mean.value == 0.5
    assert 0.38 < risk.mean.low < 0.42
    assert 0.58 < risk.mean.high < 0.62


@pytest.mark.parametrize("returns", [[0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 2.0, 4.0], [5.0] * 99 + [6.0]])
def test_few_or_lopsided_returns_give_ordered_finite_intervals(returns):
    risk = measure_risk(returns, seed=0)
    for name in REPORTED:
        value, low, high = getattr(risk, name)
        assert np.isfinite([value, low, high]).all(), name
        assert low <= high, name
        assert name not in SPREADS or low >= 0, name


def test_shifting_and_scaling_returns_moves_the_measures_with_them():
    R = np.random.default_rng(3).exponential(size=60)
    plain, moved = measure_risk(R, seed=0), measure_risk(1e6 + 4 * R, seed=0)
    for name, scale, shift in [
        ("mean", 4, 1e6),
        ("cvar_10", 4, 1e6),
        ("gini_deviation", 4, 0),
        ("variance", 16, 0),
    ]:
        expected = np.array(getattr(plain, name)) * scale + shift
        np.testing.assert_allclose(getattr(moved, name), expected, rtol=1e-6, err_msg=name)


def test_a_hundred_thousand_returns():
    R = np.random.default_rng(4).exponential(size=100_000)
    risk = measure_risk(R, seed=0)
    assert risk.gini_deviation.low < 0.5 < risk.gini_deviation.high
    assert risk.mean.high - risk.mean.low == pytest.approx(2 * 1.96 / 100_000**0.5, rel=0.2)


def test_the_seed_decides_the_intervals_and_nothing_else_does():
    R = np.random.default_rng(5).normal(size=50)
    np.random.seed(0)  # noqa: NPY002  (the global generator must be left as it is)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = measure_risk(R, seed=0)
    assert measure_risk(R, seed=0) == first
    assert measure_risk(R, seed=1).mean.value == first.mean.value
    assert measure_risk(R, seed=1).mean != first.mean
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_report_holds_both_samples_under_the_same_names():
    report = report_of([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], gamma=0.9, facts={"goal_rate": [1, 0, 1]}, seed=7)
    assert (report.mean.value, report.discounted.mean.value) == (2, 1)
    assert (report.maximum, report.discounted.maximum) == (3, 1.5)
    assert report.gini_deviation.value == pytest.approx(2 * report.discounted.gini_deviation.value)
    assert report.facts == {"goal_rate": pytest.approx(2 / 3)}
    assert (report.episodes, report.seed, report.gamma) == (3, 7, 0.9)
    np.testing.assert_array_equal(report.discounted_returns, [0.5, 1.0, 1.5])


def test_report_keeps_its_own_returns():
    R = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    report = report_of(R)
    R[0] = 100
    assert report.returns.dtype == np.float64
    assert report.returns[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        report.returns[0] = 0


def test_to_dict_is_strict_json_and_mirrors_the_attributes():
    report = report_of([1.0, 2.0, 4.0], [1.0, 1.5, 2.0], 0.5, {"goal_rate": [1, 1, 0], "speed": [1, np.nan, 1]})
    data = report.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["gini_deviation"] == report.gini_deviation._asdict()
    assert data["discounted"]["cvar_05"]["high"] == report.discounted.cvar_05.high
    assert (data["minimum"], data["discounted"]["maximum"]) == (1, 2)
    assert data["facts"] == {"goal_rate": pytest.approx(2 / 3), "speed": None}
    assert data["returns"] == [1, 2, 4]
    assert (data["episodes"], data["seed"], data["gamma"], data["confidence"]) == (3, 0, 0.5, 0.95)


def test_infinite_variance_is_an_answer():
    report = report_of([0.0, 1e200, -1e200])
    assert report.variance.value == np.inf
    assert report.to_dict()["variance"]["value"] is None
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((9.85, 9.61, 10.1), "9.85 [9.61, 10.1]"),
        ((-1234.56, -20000, 0.00012345), "-1235 [-20000, 0.0001234]"),
        ((2.5e7, -0.0, 999999), "2.5e+07 [0, 999999]"),
    ],
)
def test_an_estimate_prints_its_interval(estimate, text):
    assert str(Estimate(*estimate)) == text


def test_table():
    facts = {"goal_rate": [1, 1, 0, 1], "distance": [1, 2, 3, 4]}
    report = report_of([1.0, 2.0, 3.0, 6.0], [0.5, 1.0, 1.5, 3.0], 0.95, facts, seed=3)
    lines = str(report).splitlines()
    assert lines[0] == "4 episodes, seed 3; [low, high] at 95% confidence"
    assert lines[2].split(maxsplit=2) == ["measure", "undiscounted", "discounted by 0.95"]
    rows = {line.split()[0]: line for line in lines[3:] if line}
    assert str(report.gini_deviation) in rows["gini_deviation"]
    assert rows["gini_deviation"].endswith(str(report.discounted.gini_deviation))
    assert rows["maximum"].split() == ["maximum", "6", "3"]
    assert rows["goal_rate"].split(maxsplit=1)[1] == "75.0 %"
    assert rows["distance"].split()[1] == "2.5"
    assert list(rows)[:8] == [*REPORTED, "minimum", "maximum"]
    # Columns line up: the discounted cells all start where their title does.
    start = lines[2].index("discounted by")
    assert all(rows[name][start - 1] == " " != rows[name][start] for name in REPORTED)


def test_table_without_discount_has_one_column_of_values():
    assert "discounted by" not in str(report_of([1.0, 2.0]))


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        ([1.0], "1 return.*at least 2.*Collect more"),
        ([], "0 returns.*at least 2"),
        ([[1.0, 2.0], [3.0, 4.0]], r"shape \(2, 2\).*one return for each episode"),
        ([1.0, np.nan], "index 1 is nan.*finite"),
    ],
)
def test_what_cannot_be_measured(returns, message):
    with pytest.raises(ValueError, match=message):
        measure_risk(returns, seed=0)


def test_returns_and_discounted_returns_belong_to_the_same_episodes():
    with pytest.raises(ValueError, match="2 returns and 3 discounted"):
        report_of([1.0, 2.0], [1.0, 2.0, 3.0])


# Measures that are asked for


@pytest.mark.parametrize("name", MEASURES)
def test_every_registered_measure_can_be_asked_for(name):
    R = np.random.default_rng(6).normal(size=40)
    plain, more = measure_risk(R, seed=0), measure_risk(R, 0, [name])
    value, low, high = more.measures[name]
    sign = -1 if name == "cvar" else 1  # What is reported is CVaR, what is penalized is minus CVaR.
    assert value == pytest.approx(sign * MEASURES[name].value(R), rel=1e-12)
    assert low < value < high
    assert {name: getattr(more, name) for name in REPORTED} == {name: getattr(plain, name) for name in REPORTED}
    constant = measure_risk([0.1] * 7, 0, [name]).measures[name].value
    assert constant == {"cvar": pytest.approx(0.1), "entropic_risk": pytest.approx(-0.1)}.get(name, 0)


def test_a_new_measure_is_reported_with_no_more_than_its_registration(monkeypatch):
    loss = RiskMeasure(
        value=lambda returns: np.maximum(-np.asarray(returns), 0).mean(axis=-1),
        utility=lambda returns, law: -np.maximum(-returns, 0),
        weights=lambda sample, state: (sample.returns, state),
    )
    monkeypatch.setitem(MEASURES, "expected_loss", loss)
    assert measure_risk([-2.0, 0.0, 5.0, -4.0], 0, "expected_loss").measures["expected_loss"].value == 1.5
    assert measure_risk([-2.0, -2.0], 0, "expected_loss").measures["expected_loss"] == (2, 2, 2)


def test_numbers_and_names_in_a_report():
    R = np.random.default_rng(7).normal(size=30)
    report = RiskReport.from_returns(R, R / 2, 0.5, {}, 0, "cvar:0.5, semideviation")
    assert list(report.measures) == ["cvar:0.5", "semideviation"]
    assert report.measures["cvar:0.5"].value == pytest.approx(np.sort(R)[:15].mean())
    assert report.discounted.measures["semideviation"].value == pytest.approx(
        report.measures["semideviation"].value / 2
    )
    lines = str(report).splitlines()
    assert [line.split()[0] for line in lines[10:13]] == ["maximum", "cvar:0.5", "semideviation"]
    data = report.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["measures"]["cvar:0.5"] == report.measures["cvar:0.5"]._asdict()
    assert "measures" not in report_of(R).to_dict()
    with pytest.raises(ValueError, match=r"unknown measure 'semideviatoin'. Did you mean 'semideviation'\?"):
        measure_risk(R, 0, ["semideviatoin"])
