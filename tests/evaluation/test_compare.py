"""Differences of two policies: known values, and intervals that hold the truth as often as they claim."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import steadyrl
from steadyrl.evaluation import risk_report
from steadyrl.evaluation.compare import Comparison, compare
from steadyrl.evaluation.reported import REPORTED
from steadyrl.evaluation.risk_report import RiskReport


class Bet(gym.Env):
    """One step: a normal draw from the episode's seed times the stake, which is the action, plus 1."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Box(-10, 10, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        facts = {"high_rate": action[0] > 2}
        return 0, 1 + float(action[0] * self.np_random.normal()), True, False, {"facts": facts}


def stake(amount):
    return lambda observation: [amount]


def report_of(returns, seed=0):
    return RiskReport.from_returns(returns, returns, 1.0, {}, seed)


def test_values_are_those_of_the_reports():
    comparison = compare(stake(3.0), stake(1.0), Bet, episodes=50, gamma=0.9, seed=4)
    a, b = (steadyrl.evaluate(stake(x), Bet, 50, gamma=0.9, seed=4) for x in (3.0, 1.0))
    assert (comparison.a, comparison.b) == (a, b)
    for name in REPORTED:
        assert getattr(comparison, name).value == getattr(a, name).value - getattr(b, name).value
        value, low, high = getattr(comparison, name)
        assert low <= value <= high
    assert comparison.minimum == a.minimum - b.minimum
    assert comparison.discounted == comparison.discounted
    assert comparison.facts == {"high_rate": 1.0}


def test_common_chance_cancels_out():
    """Returns 1 + 2 X and 1 + X of the same X: the difference of the means varies as X, not as 3 X would."""
    comparison = compare(stake(2.0), stake(1.0), Bet, episodes=200)
    spread = comparison.b.standard_deviation.value
    width = comparison.mean.high - comparison.mean.low
    assert width == pytest.approx(2 * 1.96 * spread / 200**0.5, rel=0.1)


@pytest.mark.parametrize("correlation", [0.9, -0.9])
def test_intervals_cover_the_truth_whatever_ties_the_pairs(correlation, monkeypatch):
    """Normal returns with deviations 2 and 1: GD is sigma / sqrt(pi). The reports need no intervals of their own."""
    monkeypatch.setattr(risk_report, "bootstrap_intervals", lambda *_: np.zeros((2, len(REPORTED))))
    monkeypatch.setattr(risk_report, "RESAMPLES", 500)
    rng, covered = np.random.default_rng(0), {"mean": [], "gini_deviation": []}
    truth = {"mean": 0.5, "gini_deviation": 1 / np.pi**0.5}
    for seed in range(120):
        X, Y = rng.normal(size=(2, 80))
        Y = correlation * X + (1 - correlation**2) ** 0.5 * Y
        comparison = Comparison.of(report_of(0.5 + 2 * X, seed), report_of(Y, seed))
        for name, inside in covered.items():
            _, low, high = getattr(comparison, name)
            inside.append(low <= truth[name] <= high)
    assert all(0.87 <= np.mean(inside) <= 0.995 for inside in covered.values()), covered


def test_better_is_high_mean_and_tail_and_low_dispersion():
    comparison = compare(stake(5.0), stake(0.1), Bet, episodes=100)
    assert comparison.better == {
        "mean": None,
        "standard_deviation": "b",
        "variance": "b",
        "gini_deviation": "b",
        "cvar_05": "b",
        "cvar_10": "b",
    }
    other = compare(stake(0.1), stake(5.0), Bet, episodes=100)
    assert set(other.better.values()) == {None, "a"}
    assert "Higher mean: inconclusive with this many episodes. Steadier, by Gini deviation: a." in str(other)


def test_constant_returns_are_certain():
    comparison = Comparison.of(report_of([0.3] * 7), report_of([0.1] * 7))
    assert comparison.mean == (0.3 - 0.1,) * 3
    assert comparison.gini_deviation == (0, 0, 0)
    assert comparison.better["mean"] == "a"
    one_constant = Comparison.of(report_of([2.0] * 30), report_of(np.random.default_rng(0).normal(size=30)))
    assert one_constant.better["gini_deviation"] == "a"
    for name in REPORTED:
        assert np.isfinite(getattr(one_constant, name)).all()


def test_a_policy_does_not_differ_from_itself():
    comparison = compare(stake(1.0), stake(1.0), Bet, episodes=10)
    assert all(getattr(comparison, name) == (0, 0, 0) for name in REPORTED)
    assert "Higher mean: no difference." in str(comparison)


@pytest.mark.parametrize("n", [2, 3, 1001])
def test_few_and_many_episodes(n):
    R = np.random.default_rng(1).normal(size=(2, n))
    comparison = Comparison.of(report_of(R[0]), report_of(R[1]))
    for name in REPORTED:
        _, low, high = getattr(comparison, name)
        assert low <= high


def test_same_seed_same_comparison():
    first, again, other = (compare(stake(2.0), stake(1.0), Bet, episodes=20, seed=s) for s in (0, 0, 1))
    assert first == again
    assert first.mean != other.mean


def test_to_dict_is_strict_json():
    comparison = compare(stake(2.0), stake(1.0), Bet, episodes=20, gamma=0.5)
    data = comparison.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["mean"] == comparison.mean._asdict()
    assert data["better"] == comparison.better
    assert data["a"]["mean"]["value"] == comparison.a.mean.value
    infinite = Comparison.of(report_of([0.0, 1e200, -1e200]), report_of([0.0, 1.0, 2.0]))
    json.dumps(infinite.to_dict(), allow_nan=False)


def test_table():
    lines = str(compare(stake(2.0), stake(1.0), Bet, episodes=20, gamma=0.5, seed=3)).splitlines()
    assert lines[0] == "20 episodes each, seed 3; a - b with [low, high] at 95% confidence"
    assert lines[2].split() == ["undiscounted", "a", "b", "a", "-", "b", "better"]
    assert any(line.startswith("discounted by 0.5") for line in lines)
    assert "high_rate   0.0 %   0.0 %" in lines


class Discounting:
    def __init__(self, gamma):
        self.gamma = gamma

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.ones(1, np.float32), None


def test_the_discount_is_common():
    assert compare(Discounting(0.9), stake(1.0), Bet, episodes=2).a.gamma == 0.9
    assert compare(stake(1.0), Discounting(0.9), Bet, episodes=2).a.gamma == 0.9
    assert compare(Discounting(0.9), Discounting(0.5), Bet, episodes=2, gamma=1).b.gamma == 1


def test_different_discounts_leave_the_undiscounted_returns():
    comparison = compare(Discounting(0.9), Discounting(0.5), Bet, episodes=20)
    same = compare(Discounting(0.9), Discounting(0.5), Bet, episodes=20, gamma=1)
    assert comparison.mean == same.mean
    assert comparison.gini_deviation == same.gini_deviation
    assert comparison.better == same.better
    assert (comparison.a.gamma, comparison.b.gamma) == (0.9, 0.5)
    assert comparison.discounted is None
    data = comparison.to_dict()
    assert data["discounted"] is None
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    note = (
        "Discounted returns are not compared: a discounts by 0.9, b by 0.5. "
        "To compare them, give one discount for both, such as gamma=0.9."
    )
    assert note in str(comparison).splitlines()
    assert note not in str(same)


def test_what_cannot_be_compared_is_refused_before_anything_is_played():
    def never(observation):
        pytest.fail("played")

    with pytest.raises(TypeError, match="policy is a int"):
        compare(never, 3, Bet)
    with pytest.raises(ValueError, match="episodes=1"):
        compare(never, never, Bet, episodes=1)
    with pytest.raises(ValueError, match=r"seed is 0 in one report and 1 in the other.*same seed"):
        Comparison.of(report_of([1.0, 2.0]), report_of([1.0, 2.0], seed=1))


def test_measures_that_are_asked_for():
    names = ["semivariance", "cvar:0.2", "variance"]
    comparison = compare(stake(5.0), stake(0.1), Bet, episodes=60, measures=names)
    plain = compare(stake(5.0), stake(0.1), Bet, episodes=60)
    assert list(comparison.measures) == names
    assert {name: getattr(comparison, name) for name in REPORTED} == {name: getattr(plain, name) for name in REPORTED}
    assert comparison.measures["variance"] == comparison.variance
    for name in names:
        a, b = (report.measures[name].value for report in (comparison.a, comparison.b))
        assert comparison.measures[name].value == a - b
        assert comparison.better[name] == "b"
    assert comparison.measures["cvar:0.2"].high < 0 < comparison.measures["semivariance"].low
    assert comparison.to_dict()["measures"].keys() == set(names)
    rows = [line.split()[0] for line in str(comparison).splitlines() if line and line.split()[-1] == "b"]
    assert rows.count("variance") == rows.count("semivariance") == rows.count("cvar:0.2") == 1
    constant = Comparison.of(*(RiskReport.from_returns([c] * 5, [c] * 5, 1.0, {}, 0, names) for c in (3.0, 1.0)))
    assert constant.measures == {"semivariance": (0, 0, 0), "cvar:0.2": (2, 2, 2), "variance": (0, 0, 0)}
