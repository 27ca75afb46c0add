"""Measures of variability and entropic risk of samples: worked by hand, against SciPy, fractions and brute force."""

import itertools
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from risk_functions import every_sample, named
from scipy.special import logsumexp
from scipy.stats import iqr, norm

from steadyrl import risk
from steadyrl.risk import MEASURES, Law

OF_0_1_5 = {
    "semivariance": Fraction(5, 2),
    "mean_deviation": 2,
    "mean_median_deviation": Fraction(5, 3),
}


@named("name", OF_0_1_5)
def test_by_hand(name):
    assert getattr(risk, name)([0, 1, 5]) == pytest.approx(float(OF_0_1_5[name]), rel=1e-15)


def test_tails_by_hand():
    assert risk.cvar_deviation([0, 4, 4, 8], 0.25) == 4
    assert risk.inter_es_range([0, 4, 4, 8], 0.25) == 8
    # A tail of 1.5 returns: (0 + 0.5 * 4) / 1.5 and (8 + 0.5 * 4) / 1.5.
    assert risk.inter_es_range([8, 4, 0, 4], 0.375) == pytest.approx(16 / 3)
    assert risk.cvar_deviation([8, 4, 0, 4], 0.375) == pytest.approx(4 - 4 / 3)


def in_fractions(returns, alpha):
    """All that is rational of a sample, exactly."""
    R = sorted(map(Fraction, map(float, returns)))
    n, a = len(R), Fraction(alpha)
    m, k = sum(R) / n, max(a * n, Fraction(1))
    shares = [max(min(k - i, Fraction(1)), Fraction(0)) / k for i in range(n)]
    low, high = (sum(s * x for s, x in zip(shares, ordered, strict=True)) for ordered in (R, R[::-1]))
    ends = [min(max(Fraction(i, n), a / 2), 3 * a / 2) for i in range(n + 1)]
    band = [(after - before) / a for before, after in itertools.pairwise(ends)]
    lower, upper = (sum(s * x for s, x in zip(band, ordered, strict=True)) for ordered in (R, R[::-1]))
    return {
        "semivariance": sum(min(x - m, Fraction(0)) ** 2 for x in R) / (n - 1),
        "mean_deviation": sum(abs(x - m) for x in R) / n,
        "mean_median_deviation": min(sum(abs(x - y) for x in R) for y in R) / n,
        "cvar_deviation": m - low,
        "inter_es_range": high - low,
        "inter_quantile_range": upper - lower,
    }


@every_sample
@named("alpha", [0.25, 0.125])
def test_against_fractions(returns, alpha):
    for name, truth in in_fractions(returns, alpha).items():
        number = (alpha,) if name in ("cvar_deviation", "inter_es_range", "inter_quantile_range") else ()
        found = getattr(risk, name)(returns, *number)
        assert found == pytest.approx(float(truth), rel=1e-12, abs=1e-15), name


@every_sample
def test_identities(returns):
    R = np.asarray(returns)
    assert risk.semivariance(R) + risk.semivariance(-R) == pytest.approx(risk.variance(R), rel=1e-12)
    assert risk.semideviation(R) ** 2 == pytest.approx(risk.semivariance(R), rel=1e-12)
    # Half of the returns on either side: what is above the median less what is below it.
    assert risk.inter_es_range(R, 0.5) / 2 == pytest.approx(risk.mean_median_deviation(R), rel=1e-12, abs=1e-15)
    both = risk.cvar_deviation(R, 0.2) + risk.cvar_deviation(-R, 0.2)
    assert risk.inter_es_range(R, 0.2) == pytest.approx(both, rel=1e-12, abs=1e-14)
    assert risk.cvar_deviation(R, 0.2) == pytest.approx(R.mean() - risk.cvar(R, 0.2), rel=1e-12, abs=1e-14)
    assert risk.cvar_deviation(R, 1.0) == pytest.approx(0, abs=1e-15)


@every_sample
def test_the_plain_inter_quantile_range_is_scipys(returns):
    assert risk.inter_quantile_range(returns, band=0) == pytest.approx(iqr(returns), rel=1e-12)
    assert risk.inter_quantile_range(returns, 0.1, band=0) == pytest.approx(iqr(returns, rng=(10, 90)), rel=1e-12)


def test_the_band_shrinks_to_the_quantiles():
    R = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    assert risk.inter_quantile_range(R, band=1e-3) == pytest.approx(2 * norm.ppf(0.75), rel=1e-4)
    # With the default band it is 2.8 % more for a normal law: the mean of its quantiles at 0.625 to 0.875.
    truth = 2 * (norm.pdf(norm.ppf(0.625)) - norm.pdf(norm.ppf(0.875))) / 0.25
    assert risk.inter_quantile_range(R) == pytest.approx(truth, rel=1e-4)
    assert truth / (2 * norm.ppf(0.75)) == pytest.approx(1.028, abs=1e-3)


@every_sample
@named("beta", [1e-8, 0.3, 5.0, 1e4])
def test_entropic_risk_against_scipy(returns, beta):
    truth = logsumexp(-beta * np.asarray(returns), b=1 / len(returns)) / beta
    assert risk.entropic_risk(returns, beta) == pytest.approx(truth, rel=1e-9, abs=1e-7 if beta < 1 else 1e-12)


def test_entropic_risk_goes_from_the_mean_to_the_minimum():
    R = np.array([1.0, 4.0, -2.0, 7.0])
    assert risk.entropic_risk(R, 1e-12) == pytest.approx(-2.5, rel=1e-10)
    assert risk.entropic_risk(R, 1e12) == pytest.approx(2, rel=1e-10)
    small = risk.entropic_risk(R, 1e-4)
    assert small == pytest.approx(-2.5 + 1e-4 / 2 * np.var(R), abs=1e-7)


EXTREME = [[-4e307, 4e307, 0.0], [1e-310, 3e-310, 2e-310], [1e200, -1e200, 5.0, 1.0]]


@named("returns", EXTREME)
@named("name", ["semideviation", "mean_deviation", "mean_median_deviation", "inter_es_range", "inter_quantile_range",
                "cvar_deviation"])  # fmt: skip
def test_extreme_returns(name, returns):
    scale = max(map(abs, returns))
    moderate = getattr(risk, name)(np.array(returns) / scale)
    assert getattr(risk, name)(returns) == pytest.approx(moderate * scale, rel=1e-6)


def test_entropic_risk_of_extreme_returns():
    assert risk.entropic_risk([-1e308, 1e308, 0.0]) == pytest.approx(1e308)
    assert risk.entropic_risk([1e-310, 3e-310]) == pytest.approx(-2e-310, rel=1e-6)


@named("band", [-0.1, 0.3, np.nan])
def test_wrong_band(band):
    with pytest.raises(ValueError, match=f"band={band}: .* 0 <= band <= alpha=0.2"):
        risk.inter_quantile_range([1.0, 2.0], 0.2, band=band)


# Laws without dispersion


@named("as_array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@named("name", sorted(MEASURES))
def test_utilities_of_a_law_without_dispersion_are_finite(name, as_array):
    # 0.1 is no sum of its tenths in floats: rounding errors are not dispersion.
    law = Law(as_array(np.array([0.1 * 3, 0.3, 0.1 + 0.2])), as_array(np.full(3, 1 / 3)))
    u = np.asarray(MEASURES[name].utility(as_array(np.array([-50.0, 0.3, 50.0])), law))
    assert np.all(np.isfinite(u))
    if name in ("standard_deviation", "semideviation"):
        np.testing.assert_array_equal(u, 0)


@named("as_array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_a_return_far_below_the_law_has_a_finite_entropic_utility(as_array):
    law = Law(as_array(np.array([0.0, 1.0, -1e6])), as_array(np.array([0.5, 0.5, 0.0])))
    u = np.asarray(MEASURES["entropic_risk"].at(3.0).utility(as_array(np.array([-1e5, -1.0, 1e5])), law))
    assert np.all(np.isfinite(u))
    assert u[0] < u[1] < u[2]
