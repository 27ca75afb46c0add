"""The weights of every measure against the exact gradient, within their own standard error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradient_cases import (
    GRID,
    LIMIT,
    assert_unbiased,
    case,
    directions,
    estimates_of,
    fresh_sample,
    in_batches,
    standard_errors,
)
from scipy.special import softmax

from steadyrl import exact, risk
from steadyrl.exact.measures import BY_NAME, WITH_NUMBER
from steadyrl.risk import MEASURES

MAZE = pytest.param("maze", marks=pytest.mark.slow)
"""Longer episodes of more states; the random process has all that the estimators depend on."""


@pytest.fixture
def of(request):
    return case(request.param)


@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_the_truth_is_exact_and_the_episodes_are_its_own(of):
    assert of.distribution.error == 0
    powers = np.array([1, 2])
    moments = np.asarray(of.batch.returns, np.float64)[:, None] ** powers
    truth = of.distribution.probabilities @ of.distribution.values[:, None] ** powers
    assert np.all(np.abs(moments.mean(axis=0) - truth) < LIMIT * standard_errors(moments))


# Weights that need the returns alone.

FORMS = {
    "gini": (risk.gini_weights_unbiased, lambda n: n - 2, "gini_deviation"),
    "double sampling": (risk.double_sampling_weights, lambda n: n, "variance"),
    "variance": (risk.variance_weights, lambda n: (n - 1) * (n - 2) / n, "variance"),
}


@pytest.mark.parametrize("n", [3, 4, 10, 50])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_weights_are_unbiased(of, form, n):
    weights, divisor, objective = FORMS[form]
    truth = -of.gradient(objective)
    on = directions(truth)
    w = weights(in_batches(of.batch.returns, n)) / divisor(n)
    assert_unbiased(estimates_of(w, of.scores(of.visits, on)), truth, on)


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("form", ["gini", "double sampling"])
@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_weights_are_unbiased_for_episodes_of_an_older_policy(of, form, n):
    weights, divisor, objective = FORMS[form]
    truth = -of.gradient(objective)
    on = directions(truth)
    rho = in_batches(of.rho, n)
    w = rho * weights(in_batches(of.older_batch.returns, n), ratios=rho) / divisor(n)
    assert_unbiased(estimates_of(w, of.scores(of.older_visits, on)), truth, on)


@pytest.mark.parametrize("form", ["gini", "double sampling"])
def test_one_ratio_of_a_pair_is_not_enough(form):
    # Weighting trajectory i by rho_i alone leaves its partner with the older policy.
    weights, divisor, objective = FORMS[form]
    of, n = case("random"), 10
    truth = -of.gradient(objective)
    on = directions(truth)
    w = in_batches(of.rho, n) * weights(in_batches(of.older_batch.returns, n)) / divisor(n)
    estimates = estimates_of(w, of.scores(of.older_visits, on))
    z = (estimates.mean(axis=0) - on @ truth.ravel()) / standard_errors(estimates)
    assert np.max(np.abs(z)) > LIMIT, "the test above could not tell"


def test_double_sampling_of_sorted_returns_is_biased():
    # Sorted, the half that estimates the mean is the lower half, and is not independent of the other.
    of, n = case("random"), 10
    truth = -of.gradient("variance")
    on = directions(truth)
    R, scores = in_batches(of.batch.returns, n), of.scores(of.visits, on).reshape(-1, n, len(on))
    order = np.argsort(R, axis=-1)
    w = risk.double_sampling_weights(np.take_along_axis(R, order, axis=-1)) / n
    estimates = estimates_of(w, np.take_along_axis(scores, order[..., None], axis=1))
    z = (estimates.mean(axis=0) - on @ truth.ravel()) / standard_errors(estimates)
    assert abs(z[0]) > 2 * LIMIT


# The paper's form.


def lead_of_the_best(n):
    """E[max of n returns] - E[return], with P(max <= x) = F(x)^n."""

    def lead(values, probabilities):
        F = probabilities.cumsum()[:-1]
        return values[-1] - F**n @ (values[1:] - values[:-1]) - probabilities @ values

    return lead


@pytest.mark.parametrize(
    ("of", "n"), [pytest.param("maze", 10, marks=pytest.mark.slow), ("random", 5), ("random", 20)], indirect=["of"]
)
def test_the_papers_weights_are_biased_as_derived(of, n):
    # eta_i = B - (1/n) sum_j |R_i - R_j|. The sum gives -(n - 1) grad D; B = max R - mean R, which is no baseline since
    # it depends on trajectory i, gives E[B sum_i score_i] = grad E[B].
    bias = of.gradient(lead_of_the_best(n)) / (n - 1)
    minus_grad_D = -of.gradient("gini_deviation")
    on = directions(bias)
    w = risk.gini_weights(in_batches(of.batch.returns, n)) / (n - 1)
    estimates = estimates_of(w, of.scores(of.visits, on))
    assert_unbiased(estimates, minus_grad_D + bias, on, precision=np.inf)
    # The bias is there, and has this sign and size.
    seen = estimates[:, 0].mean() - on[0] @ minus_grad_D.ravel()
    assert seen > 2 * LIMIT * standard_errors(estimates)[0]
    assert seen == pytest.approx(np.linalg.norm(bias), rel=0.25)


# Weights with running estimates, and weights that hold the mean.


def weights_of(measure, state, R):
    """[batches, n]: the weights of each batch of `R`, all from the same state."""

    each = jax.jit(jax.vmap(lambda R: measure.weights(fresh_sample(R), state)[0]))
    return np.asarray(each(jnp.asarray(R, jnp.float32)), np.float64)


@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_tamar_at_the_true_moments(of, n):
    # The penalty is (V - b)+^2, and its gradient 2 (V - b)+ grad V.
    J, V = of.distribution.mean, of.distribution.variance
    measure = risk.tamar(threshold=0.4 * V, learning_rate=0.1, mean=J, spread=V)
    truth = -2 * 0.6 * V * of.gradient("variance")
    on = directions(truth)
    w = weights_of(measure, measure.initial_state, in_batches(of.batch.returns, n))
    assert_unbiased(estimates_of(w, of.scores(of.visits, on)), truth, on)


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_mvp_at_its_best_dual(of, n, with_mean):
    # 2 y grad E - grad E[R^2]; learning_rate = 0 keeps y where it is.
    risk_aversion, mean = 0.03, of.distribution.mean
    y = mean + 1 / (2 * risk_aversion) if with_mean else mean
    measure = risk.mvp(risk_aversion, learning_rate=0.0, dual=y, with_mean=with_mean)
    truth = -of.gradient("variance")
    if with_mean:
        truth = (of.gradient("mean") + risk_aversion * truth) / risk_aversion
    on = directions(truth)
    w = weights_of(measure, measure.initial_state, in_batches(of.batch.returns, n))
    assert_unbiased(estimates_of(w, of.scores(of.visits, on)), truth, on)


# Whatever is registered: the truth is the slope of the measure's own value.


def slope_of_value(value, of, step=0.02, size=400_000):
    """[S, A]: central differences of `value`, measured on the quantiles of the exact distribution."""
    shifts = step * np.eye(of.logits.size).reshape(-1, *of.logits.shape)
    measured = []
    for logits in (of.logits + shifts, of.logits - shifts):
        distribution = exact.return_distribution(of.mdp, softmax(logits, axis=-1), of.gamma, GRID)
        F = distribution.probabilities.cumsum(axis=-1)
        levels = (np.arange(size) + 0.5) / size
        measured.append([value(distribution.values[np.searchsorted(row[:-1], levels)]) for row in F])
    return np.reshape(np.subtract(*measured) / (2 * step), of.logits.shape)


@pytest.mark.parametrize(("value", "objective"), [(risk.gini_deviation, "gini_deviation"), (risk.variance, "variance")])
def test_the_slope_of_a_value_is_its_gradient(value, objective):
    truth = case("random").gradient(objective)
    error = np.max(np.abs(slope_of_value(value, case("random")) - truth))
    assert error < 2e-3 * np.linalg.norm(truth)


# Those that are linear in the law. The others have a bias of O(1/n), because the law of a batch is not the law; that of
# the paper's form is tested above.
UNBIASED = {"gini_deviation", "variance"}
NAMES = MEASURES.keys() - {"gini_paper", "gini"}  # The latter is another name of "gini_deviation".


@pytest.mark.parametrize("measure", sorted(UNBIASED))
def test_every_unbiased_measure(measure):
    truth = -slope_of_value(MEASURES[measure].value, case("random"))
    on = directions(truth)
    w = weights_of(MEASURES[measure], MEASURES[measure].initial_state, in_batches(case("random").batch.returns, 30))
    assert_unbiased(estimates_of(w, case("random").scores(case("random").visits, on)), truth, on)


@pytest.mark.parametrize("measure", sorted(NAMES - UNBIASED))
def test_every_other_measure_is_nearly_unbiased_in_large_batches(measure):
    of, some = case("random"), slice(40_000)
    truth = -slope_of_value(MEASURES[measure].value, of, size=100_000)
    on = directions(truth)
    w = weights_of(MEASURES[measure], MEASURES[measure].initial_state, in_batches(of.batch.returns[some], 100))
    estimates = estimates_of(w, of.scores(of.visits[some], on))
    errors = standard_errors(estimates)
    assert errors[0] < 0.1 * np.linalg.norm(truth), "too imprecise to tell a wrong factor"
    assert np.all(np.abs(estimates.mean(axis=0) - on @ truth.ravel()) < LIMIT * errors + 0.05 * np.linalg.norm(truth))


@pytest.mark.parametrize("measure", sorted(NAMES & {*BY_NAME, *WITH_NUMBER}))
@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_with_the_law_known_the_expected_utility_has_minus_the_gradient_of_the_measure(of, measure):
    law = risk.Law(of.distribution.values, of.distribution.probabilities)
    u = MEASURES[measure].utility(law.returns, law)
    ascent = exact.gradient(lambda values, probabilities: probabilities @ jnp.asarray(u), of.mdp, of.logits, of.gamma)
    sign = 1 if measure == "cvar" else -1  # The measure is minus CVaR.
    truth = sign * of.gradient(measure)
    assert np.linalg.norm(truth) > 0
    np.testing.assert_allclose(ascent, truth, rtol=1e-6, atol=1e-9 * np.linalg.norm(truth))
