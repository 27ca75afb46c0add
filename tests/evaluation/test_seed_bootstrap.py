"""Intervals over seeds and episodes."""

import numpy as np
import pytest

from steadyrl.evaluation.risk_report import measure_risk
from steadyrl.evaluation.seed_bootstrap import risk_of_seeds


def test_a_single_seed_has_the_intervals_of_its_episodes():
    returns = np.random.default_rng(0).normal(size=50)
    risk = measure_risk(returns, seed=0)
    assert risk_of_seeds([returns], ["mean", "cvar_10"]) == {"mean": risk.mean, "cvar_10": risk.cvar_10}


def test_seeds_that_differ_widen_the_interval():
    rng = np.random.default_rng(0)
    alike = [rng.normal(size=200) for _ in range(5)]
    apart = [sample + shift for sample, shift in zip(alike, (-4, -2, 0, 2, 4), strict=True)]
    narrow, wide = risk_of_seeds(alike, ["mean"])["mean"], risk_of_seeds(apart, ["mean"])["mean"]
    assert narrow.high - narrow.low < 0.5
    # The standard error of the mean of five seeds: the deviation of the shifts, sqrt(8), over sqrt(5), is 1.26.
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * 1.26, rel=0.2)
    assert wide.value == pytest.approx(np.concatenate(apart).mean())


def test_equal_returns_have_no_interval():
    assert risk_of_seeds([np.full(4, 2.0), np.full(3, 2.0)], ["mean", "gini_deviation"]) == {
        "mean": (2, 2, 2),
        "gini_deviation": (0, 0, 0),
    }
