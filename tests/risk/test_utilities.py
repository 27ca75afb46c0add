"""The utility of every measure against the derivative of the measure, and the weights that follow from utilities."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl import exact, risk
from steadyrl.exact.measures import BY_NAME, WITH_NUMBER, by_name
from steadyrl.risk import MEASURES, Law, Sample, measure_by_name
from steadyrl.risk.gini import gini_utility
from steadyrl.risk.measure import weights_from
from steadyrl.risk.variance import variance_utility

named = pytest.mark.parametrize
every_measure = named("name", sorted(MEASURES.keys() - {"gini_deviation"}))  # Another name of "gini".
EXACT = {
    **{name: by_name(name) for name in MEASURES if name in (*BY_NAME, *WITH_NUMBER)},
    **dict.fromkeys(("gini", "gini_paper"), exact.gini_deviation),
    "cvar": lambda values, probabilities: -exact.cvar(0.1)(values, probabilities),
}
"""The measures as functions of (values, probabilities)."""
UTILITIES = {"gini": gini_utility, "variance": variance_utility}
"""Those whose leave-one-out weights are unbiased: the expectation of u over laws is u of the expected law."""
VALUES = np.array([-7.0, -2.5, -2.0, 0.5, 1.0, 4.0, 9.0, 9.5])
PROBABILITIES = np.array([0.02, 0.0, 0.05, 0.08, 0.25, 0.0, 0.4, 0.2])
"""No sum of these is 0.1, where CVaR has no derivative. Values of probability 0 have one too."""


def law_of(values, probabilities=None):
    values = np.asarray(values, float)
    return Law(values, np.full(len(values), 1 / len(values)) if probabilities is None else probabilities)


def sample_of(returns, ratios=None, where=None):
    R = jnp.asarray(returns, float)
    rho = jnp.ones_like(R) if ratios is None else jnp.asarray(ratios, R.dtype)
    return Sample(R, rho, jnp.ones(R.shape, bool) if where is None else jnp.asarray(where))


def weights_of(utility, returns, ratios=None, where=None):
    """In 64 bits; returns may be a batch of samples."""
    with jax.enable_x64(True):
        return np.asarray(compiled(utility)(*sample_of(returns, ratios, where)[:3]))


@cache
def compiled(utility):
    return jax.jit(jnp.vectorize(partial(_weights, utility), signature="(n),(n),(n)->(n)"))


def _weights(utility, *sample):
    return weights_from(utility)(Sample(*sample), ())[0]


# Utilities


@named("name", sorted(EXACT))
def test_a_utility_is_minus_the_derivative_of_the_measure(name):
    with jax.enable_x64(True):
        derivative = jax.grad(EXACT[name], argnums=1)(jnp.asarray(VALUES), jnp.asarray(PROBABILITIES))
    u = MEASURES[name].utility(VALUES, law_of(VALUES, PROBABILITIES))
    constant = u + np.asarray(derivative)
    assert np.ptp(u) > 1
    np.testing.assert_allclose(constant, constant[0], atol=1e-9)


@every_measure
def test_a_utility_is_minus_the_slope_of_the_value_of_large_samples(name):
    # Of measures to come as well: a few more returns of one kind, against as many of another.
    size, more = 200_000, 2
    value, utility = MEASURES[name].value, MEASURES[name].utility
    sample = np.repeat(VALUES, np.round(size * PROBABILITIES).astype(int))
    x = np.array([-9.0, -7.0, -2.2, 0.5, 3.0, 12.0])
    values = np.array([value(np.concatenate([sample, np.full(more, one)])) for one in x])
    slopes = (values - values[0]) * (size + more) / more
    u = utility(x, law_of(VALUES, PROBABILITIES))
    np.testing.assert_allclose(u[0] - u, slopes, rtol=2e-3, atol=2e-3 * np.ptp(u))


@every_measure
def test_utilities_agree_in_numpy_and_jax(name):
    law = law_of(VALUES, PROBABILITIES)
    R = np.random.default_rng(0).normal(0, 6, size=(3, 5))
    u = MEASURES[name].utility(R, law)
    assert isinstance(u, np.ndarray)
    on_jax = jax.jit(MEASURES[name].utility)(jnp.asarray(R), jax.tree.map(jnp.asarray, law))
    assert u.shape == on_jax.shape == R.shape
    np.testing.assert_allclose(on_jax, u, rtol=1e-5, atol=1e-5)


@every_measure
def test_a_utility_depends_on_the_law_and_not_on_how_it_is_written(name):
    law = law_of(VALUES, PROBABILITIES)
    shuffled = np.random.default_rng(1).permutation(len(VALUES))
    split = Law(
        np.concatenate([VALUES[shuffled], VALUES, [-100.0, 100.0]]),
        np.concatenate([PROBABILITIES[shuffled] / 4, PROBABILITIES * 3 / 4, [0.0, 0.0]]),
    )
    R = np.linspace(-10, 12, 40)
    np.testing.assert_allclose(MEASURES[name].utility(R, split), MEASURES[name].utility(R, law), atol=1e-9)


@named("as_array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@named("n", [1, 9, 10, 11, 20, 30, 50, 70, 90, 100, 110, 990, 1000])
def test_the_tail_of_a_sample_is_its_worst_tenth_rounded_up(n, as_array):
    # The quantile is the k-th worst return, with k = n / 10 rounded up: also in 32 bits, where sums are not exact.
    R = np.random.default_rng(n).permutation(n).astype(np.float64)
    law = jax.tree.map(as_array, law_of(R))
    u = MEASURES["cvar"].utility(as_array(R), law)
    np.testing.assert_allclose(u, np.minimum(R - (-(-n // 10) - 1), 0) / 0.1, rtol=1e-5)


# Weights


def expected_ascent(utility, logits, values, n):
    """The expectation of sum_i weight_i score_i over all batches of n independent returns, for softmax(logits)."""
    p = np.exp(logits) / np.exp(logits).sum()
    batches = np.array(list(itertools.product(range(len(values)), repeat=n)))
    scores = np.eye(len(values))[batches] - p
    return np.einsum("b,bi,bid->d", p[batches].prod(axis=1), weights_of(utility, values[batches]), scores)


@named("n", [2, 3, 5])
@named("values", [(0.0, 3.0), (-2.0, 0.5, 4.0)], ids=["two returns", "three returns"])
@named("name", sorted(UTILITIES))
def test_the_weights_are_unbiased(name, values, n):
    values = np.array(values)
    logits = np.array([0.3, -0.4, 0.9])[: len(values)]
    with jax.enable_x64(True):
        truth = -jax.grad(lambda x: EXACT[name](jnp.asarray(values), jax.nn.softmax(x)))(jnp.asarray(logits))
    assert np.linalg.norm(truth) > 0.1
    np.testing.assert_allclose(expected_ascent(UTILITIES[name], logits, values, n), truth, atol=1e-10)


LEAVE_ONE_OUT = {
    "gini": lambda R: risk.gini_weights_unbiased(R) / (len(R) - 2),
    "variance": lambda R: risk.variance_weights(R) * len(R) / ((len(R) - 1) * (len(R) - 2)),
}


@named("name", sorted(LEAVE_ONE_OUT))
def test_they_are_the_closed_leave_one_out_weights_but_for_the_baseline(name):
    R = np.random.default_rng(2).normal(size=7)

    def difference(R):
        return weights_of(UTILITIES[name], R) - LEAVE_ONE_OUT[name](R)

    for i in range(len(R)):
        moved = R + 2.5 * (np.arange(len(R)) == i)
        # The weight moves with its own return, and the difference does not: it depends on the other returns alone.
        assert abs(weights_of(UTILITIES[name], moved)[i] - weights_of(UTILITIES[name], R)[i]) > 0.05
        assert difference(moved)[i] == pytest.approx(difference(R)[i], abs=1e-12)


def weights_by_hand(utility, R, ratios):
    weights = []
    for i in range(len(R)):
        others, mass = np.delete(R, i), np.delete(ratios, i)
        law = Law(others, mass / mass.sum())
        weights.append((utility(R[i : i + 1], law)[0] - law.probabilities @ utility(others, law)) / len(R))
    return weights


@every_measure
def test_others_are_as_likely_as_their_ratios(name):
    rng = np.random.default_rng(3)
    R, ratios = rng.normal(size=12), rng.uniform(0.5, 1.5, size=12)
    weights = weights_of(MEASURES[name].utility, R, ratios)
    np.testing.assert_allclose(weights, weights_by_hand(MEASURES[name].utility, R, ratios), atol=1e-12)
    assert not np.allclose(weights, weights_of(MEASURES[name].utility, R), atol=1e-3)


@every_measure
def test_returns_that_are_not_selected_weigh_nothing_and_change_nothing(name):
    rng = np.random.default_rng(4)
    R, ratios, where = rng.normal(size=12), rng.uniform(0.5, 1.5, size=12), rng.random(12) < 0.6
    weights = weights_of(MEASURES[name].utility, R, ratios, where)
    np.testing.assert_array_equal(weights[~where], 0)
    np.testing.assert_allclose(weights[where], weights_of(MEASURES[name].utility, R[where], ratios[where]), atol=1e-12)


@every_measure
@named("where", [[True] * 5, [True, False, True, True, False]])
def test_returns_that_are_all_alike_weigh_nothing(name, where):
    np.testing.assert_array_equal(weights_of(MEASURES[name].utility, [4.0] * 5, where=where), 0)


@named("selected", [0, 1])
@every_measure
def test_without_others_to_compare_with_the_weights_are_finite(name, selected):
    weights = weights_of(MEASURES[name].utility, [1.0, 2.0, 3.0], where=np.arange(3) < selected)
    assert np.all(np.isfinite(weights))


def test_the_whole_of_the_returns_has_no_tail():
    """With alpha = 1 CVaR is the mean, also of returns that are higher than all that the law knows."""
    law = Law(np.array([0.0, 1.0, 3.0]), np.full(3, 1 / 3))
    given = np.array([-2.0, 0.5, 3.0, 10.0])
    assert np.diff(measure_by_name("cvar:1").utility(given, law)) == pytest.approx(np.diff(given))
    assert np.ptp(measure_by_name("inter_es_range:1").utility(given, law)) == pytest.approx(0)
