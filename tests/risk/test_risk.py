"""Values and weights of samples of returns: worked by hand, as identities, against slower formulas and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from risk_functions import (
    BY_RETURN_ALONE,
    DISPERSIONS,
    SYMMETRIC,
    WEIGHTS,
    every_sample,
    every_weight,
    named,
    samples,
    three_or_more,
)
from scipy.stats import lmoment

from steadyrl import risk
from steadyrl.risk import Order

# The oracles: formulas as they are written, one pair after another.


def gini_by_pairs(R, unbiased=True):
    n = len(R)
    return sum(abs(x - y) for x in R for y in R) / 2 / (n * (n - 1) if unbiased else n * n)


def eta_by_pairs(R):
    n = len(R)
    return np.array([(max(R) - np.mean(R)) - sum(abs(x - y) for y in R) / n for x in R])


def eta_as_printed(R):
    """Eq. 16 on ascending returns, with the paper's indices from 1 to n; eta_n is an empty sum."""
    n, R = len(R), {i: x for i, x in enumerate(R, start=1)}
    return np.array([sum(2 * j / n * (R[j + 1] - R[j]) for j in range(i, n)) - (R[n] - R[i]) for i in range(1, n + 1)])


def unbiased_by_pairs(R, rho):
    """-grad D = (1 / (n - 2)) sum rho_i weight_i score_i, from the corrected pairs and the leave-one-out baseline."""
    n = len(R)
    w = np.array([sum(r * abs(x - y) for y, r in zip(R, rho, strict=True)) / (n - 1) for x in R])
    weights = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        # 2D from all pairs that i is no part of.
        pairs = sum(rho[j] * rho[k] * abs(R[j] - R[k]) for j in others for k in others)
        baseline = pairs / ((n - 1) * (n - 2))
        weights[i] = -(n - 2) / n * (w[i] - baseline)
    return weights


def double_sampling_by_hand(R, rho, where):
    """-n times the terms of the printed estimate, split by position; counts are of the selected."""
    half = len(R) // 2
    first = [i for i in range(len(R)) if i < half and where[i]]
    second = [i for i in range(len(R)) if i >= half and where[i]]
    n = len(first) + len(second)
    J = sum(rho[i] * R[i] for i in first) / len(first)
    weights = np.zeros(len(R))
    for i in first:
        weights[i] = -n * (R[i] ** 2 / n)
    for i in second:
        weights[i] = -n * (R[i] ** 2 / n - 2 * J * R[i] / len(second))
    return weights


# Values.


def test_gini_deviation_of_two_returns():
    assert risk.gini_deviation([0, 1]) == 0.5
    assert risk.gini_deviation([0, 1], unbiased=False) == 0.25


def test_gini_deviation_by_hand():
    # Distances 1, 3, 4, 2, 3, 1 of the six pairs: half their mean, and their sum over n^2 = 16.
    assert risk.gini_deviation([4, 1, 0, 3]) == pytest.approx(14 / 6 / 2)
    assert risk.gini_deviation([4, 1, 0, 3], unbiased=False) == pytest.approx(14 / 16)


@every_sample
def test_gini_deviation_against_pairs_and_scipy(returns):
    assert risk.gini_deviation(returns) == pytest.approx(gini_by_pairs(returns), rel=1e-13)
    assert risk.gini_deviation(returns, unbiased=False) == pytest.approx(gini_by_pairs(returns, False), rel=1e-13)
    assert risk.gini_deviation(returns) == pytest.approx(lmoment(returns, order=2), rel=1e-13, abs=1e-15)


@named("name", DISPERSIONS)
@every_sample
def test_scale_and_location(name, returns):
    dispersion, R = DISPERSIONS[name], np.asarray(returns)
    power = 2 if name in ("variance", "semivariance") else 1
    assert dispersion(3 * R) == pytest.approx(3**power * dispersion(R), rel=1e-12)
    if name in SYMMETRIC:
        assert dispersion(-R) == pytest.approx(dispersion(R), rel=1e-12)
    assert dispersion(R + 7) == pytest.approx(dispersion(R), rel=1e-12, abs=1e-14 if power == 1 else 1e-28)


@named(
    ("draw", "truth"),
    [
        (lambda rng, size: rng.normal(2, 3, size), 3 / np.sqrt(np.pi)),
        (lambda rng, size: rng.uniform(-1, 4, size), 5 / 6),
        (lambda rng, size: rng.exponential(2, size), 1.0),
        (lambda rng, size: rng.random(size) < 0.2, 0.2 * 0.8),
    ],
    ids=["normal", "uniform", "exponential", "coin"],
)
@named("n", [2, 5, 40])
def test_gini_deviation_is_unbiased(draw, truth, n):
    estimates = risk.gini_deviation(draw(np.random.default_rng(1), (40_000, n)))
    standard_error = estimates.std(ddof=1) / 200
    assert standard_error < 0.01 * truth
    assert estimates.mean() == pytest.approx(truth, abs=4 * standard_error)


def test_standard_deviation_is_at_least_root_3_times_the_gini_deviation():
    # Every sample is a distribution of its own; the grid is nearly uniform, where the two sides are equal.
    rng = np.random.default_rng(2)
    grid = np.arange(1000) / 999
    drawn = [rng.normal(size=50), rng.exponential(size=50), rng.standard_cauchy(size=50), rng.beta(0.1, 0.1, size=50)]
    for R in [*samples(), *drawn, grid]:
        # sd divides by n: it is that of the distribution, as is D.
        assert np.std(R) >= np.sqrt(3) * risk.gini_deviation(R, unbiased=False) * (1 - 1e-12)
    assert np.std(grid) == pytest.approx(np.sqrt(3) * risk.gini_deviation(grid, unbiased=False), rel=1e-5)


def test_variance_is_not_at_least_root_3_times_the_gini_deviation():
    # The paper prints V for the standard deviation. U(0, 0.1) has V = 1/1200 and D = 1/60.
    R = 0.1 * np.arange(10_001) / 10_000
    assert risk.variance(R) == pytest.approx(1 / 1200, rel=1e-3)
    assert risk.gini_deviation(R) == pytest.approx(1 / 60, rel=1e-3)
    assert risk.variance(R) < np.sqrt(3) * risk.gini_deviation(R) / 10


def test_variance_divides_by_n_minus_1():
    assert risk.variance([1, 3]) == 2
    assert risk.variance([1, 2, 6]) == 7
    assert risk.standard_deviation([1, 3]) == np.sqrt(2)


@named(
    ("alpha", "tail"),
    [
        (0.25, 1),  # the lowest one of four
        (0.5, 1.5),
        (0.375, (1 + 0.5 * 2) / 1.5),  # the second counts half
        (0.9, (1 + 2 + 4 + 0.6 * 8) / 3.6),
        (0.1, 1),  # less than one return: the lowest
        (1.0, 15 / 4),
    ],
)
def test_cvar_by_hand(alpha, tail):
    assert risk.cvar([4, 1, 8, 2], alpha) == pytest.approx(tail, rel=1e-15)


@every_sample
def test_cvar_is_between_the_minimum_and_the_mean(returns):
    assert risk.cvar(returns, 1.0) == pytest.approx(np.mean(returns), rel=1e-14, abs=1e-15)
    assert risk.cvar(returns, 1e-9) == np.min(returns)
    tails = [risk.cvar(returns, alpha) for alpha in np.linspace(0.01, 1, 100)]
    assert np.all(np.diff(tails) >= -1e-14)


# Weights.


@every_sample
def test_gini_weights_against_pairs_and_the_printed_sum(returns):
    R = np.asarray(returns)
    np.testing.assert_allclose(risk.gini_weights(R), eta_by_pairs(R), rtol=1e-13, atol=1e-14)
    ascending = np.sort(R)
    np.testing.assert_allclose(risk.gini_weights(ascending), eta_as_printed(ascending), rtol=1e-13, atol=1e-14)


def test_gini_weights_by_hand():
    # Gaps 1, 2 and 4; rates 2j/n - 1 are -1/2, 0 and 1/2; eta sums from the gap above each return upwards.
    np.testing.assert_allclose(risk.gini_weights([0, 1, 3, 7]), [1.5, 2, 2, 0])
    # w = (0+1+3+7, 1+2+6, 3+2+4, 7+6+4) / 3 and their mean is 46/12.
    np.testing.assert_allclose(risk.gini_weights_unbiased([0, 1, 3, 7]), np.array([1 / 2, 5 / 2, 5 / 2, -11 / 2]) / 3)


def test_two_returns_leave_no_baseline():
    np.testing.assert_array_equal(risk.gini_weights_unbiased([3.0, 1.0]), [0, 0])


@three_or_more
def test_the_unbiased_weights_against_pairs(returns):
    n = len(returns)
    weights = risk.gini_weights_unbiased(returns)
    np.testing.assert_allclose(weights, unbiased_by_pairs(returns, np.ones(n)), rtol=1e-12, atol=1e-14)
    # With equal ratios the leave-one-out baseline amounts to the mean over all.
    w = np.abs(np.subtract.outer(returns, returns)).sum(axis=-1) / (n - 1)
    np.testing.assert_allclose(weights, w.mean() - w, rtol=1e-12, atol=1e-13)


@three_or_more
def test_ratios_correct_both_members_of_a_pair(returns):
    n = len(returns)
    R, rho = np.asarray(returns), np.random.default_rng(n).uniform(0.5, 2, size=n)
    weights = risk.gini_weights_unbiased(R, ratios=rho)
    np.testing.assert_allclose(weights, unbiased_by_pairs(R, rho), rtol=1e-11, atol=1e-13)
    w = (rho * np.abs(R[:, None] - R)).sum(axis=-1) / (n - 1)
    g = np.mean(rho * w)
    by_formula = (w - (n * g - 2 * rho * w) / (n - 2)) / n
    np.testing.assert_allclose(weights / (n - 2), -by_formula, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(risk.gini_weights_unbiased(R, ratios=np.ones(n)), risk.gini_weights_unbiased(R))


@named("n", [4, 5, 9, 10])
@named("masked", [False, True])
@named("weighted", [False, True])
def test_double_sampling_by_hand(n, masked, weighted):
    rng = np.random.default_rng(n)
    R = rng.normal(3, 2, size=n)
    rho = rng.uniform(0.5, 1.5, size=n) if weighted else np.ones(n)
    where = rng.permutation(np.arange(n) != 1) if masked else np.ones(n, dtype=bool)
    weights = risk.double_sampling_weights(R, where if masked else None, rho if weighted else None)
    np.testing.assert_allclose(weights, double_sampling_by_hand(R, rho, where), rtol=1e-13, atol=0)


def test_double_sampling_of_four_returns():
    # J of the first two is 2; the others stand for all four, so each weighs -(R^2 - 2 * 2 * 2 R).
    np.testing.assert_array_equal(risk.double_sampling_weights([1, 3, 2, 5]), [-1, -9, 12, 15])


def test_double_sampling_must_not_see_sorted_returns():
    # Sorted, the first half is the lower one: J is too small, and weights belong to ranks.
    R = np.array([5.0, 1, 3, 2])
    order = np.argsort(R)
    weights, of_sorted = risk.double_sampling_weights(R), risk.double_sampling_weights(R[order])
    assert not np.allclose(weights[order], of_sorted)
    assert np.sum(weights) != pytest.approx(np.sum(of_sorted))


def test_variance_weights_by_hand():
    # Deviations -2, -1 and 3 from the mean 3; s^2 = 14/3.
    np.testing.assert_allclose(risk.variance_weights([1, 2, 6]), [14 / 3 - 4, 14 / 3 - 1, 14 / 3 - 9])


@named("name", ["gini_weights", "gini_weights_unbiased"])
@every_sample
def test_a_known_order_saves_only_the_sorting(name, returns):
    R = np.asarray(returns)
    np.testing.assert_array_equal(WEIGHTS[name](R, order=Order.of(R)), WEIGHTS[name](R))


@named("name", BY_RETURN_ALONE)
@every_sample
def test_weights_keep_the_order_of_the_returns(name, returns):
    weights, R = WEIGHTS[name], np.asarray(returns)
    order = np.random.default_rng(3).permutation(len(R))
    np.testing.assert_allclose(weights(R[order]), weights(R)[order], rtol=1e-12, atol=1e-14)


@named("name", BY_RETURN_ALONE)
@every_sample
def test_equal_returns_weigh_the_same(name, returns):
    weights = WEIGHTS[name](returns)
    for x in np.unique(returns):
        np.testing.assert_allclose(weights[np.asarray(returns) == x], weights[list(returns).index(x)], atol=1e-14)
    if len(np.unique(returns)) == 1:
        np.testing.assert_array_equal(weights, np.zeros(len(returns)))


@named("name", BY_RETURN_ALONE)
@every_sample
def test_weights_ignore_location_and_follow_scale(name, returns):
    weights, R = WEIGHTS[name], np.asarray(returns)
    power = 2 if name == "variance_weights" else 1
    np.testing.assert_allclose(weights(R + 7), weights(R), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(weights(3 * R), 3**power * weights(R), rtol=1e-11, atol=1e-13)


@named("name", ["gini_weights_unbiased", "variance_weights"])
@every_sample
def test_unbiased_weights_sum_to_zero(name, returns):
    # So a score that is the same for all trajectories is never mistaken for a gradient.
    assert np.sum(WEIGHTS[name](returns)) == pytest.approx(0, abs=1e-12)


@every_weight
@named("compiled", [False, True], ids=["eager", "jit"])
def test_a_mask_leaves_the_weights_of_the_subset(name, compiled):
    rng = np.random.default_rng(4)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if compiled else {"rtol": 1e-12, "atol": 1e-13}
    for selected in (2, 3, 7, 20):
        R = rng.integers(0, 6, size=20).astype(float)
        where = rng.permutation(np.arange(20) < selected)
        if name == "double_sampling_weights":
            # The halves are those of the whole batch; only here do they coincide with those of the subset.
            where = np.tile(where[:10] | (np.arange(10) < 2), 2)
        weights = jax.jit(WEIGHTS[name])(jnp.asarray(R), jnp.asarray(where)) if compiled else WEIGHTS[name](R, where)
        np.testing.assert_allclose(weights[where], WEIGHTS[name](R[where]), **tolerance)
        np.testing.assert_array_equal(weights[~where], 0)


def test_a_mask_hides_the_ratios_too():
    rng = np.random.default_rng(5)
    R, rho, where = rng.normal(size=8), rng.uniform(0.5, 2, size=8), np.arange(8) % 4 != 1
    of_subset = risk.gini_weights_unbiased(R[where], ratios=rho[where])
    np.testing.assert_allclose(risk.gini_weights_unbiased(R, where, rho)[where], of_subset, rtol=1e-12)
    rho[~where] = 1e30
    np.testing.assert_allclose(risk.gini_weights_unbiased(R, where, rho)[where], of_subset, rtol=1e-12)


@every_weight
def test_a_mask_that_selects_nothing_is_harmless_when_compiled(name):
    # An agent drops such a batch, but computes its weights first: NaN would survive there.
    weights = jax.jit(WEIGHTS[name])(jnp.arange(4.0), jnp.zeros(4, bool))
    np.testing.assert_array_equal(weights, 0)
