"""Every gradient estimator against the exact gradient, within its own standard error.

Many batches of episodes are played by the compiled collector. Estimates are projected on the direction of the exact
gradient, where they must be precise enough to tell a wrong sign or factor, and on fixed random directions. On each, the
mean over all batches must lie within 4 standard errors of the truth. With some 400 such comparisons, right estimators
would fail one of them for about 1 seed in 40; the seeds here are fixed.
"""

from functools import cache, cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from steadyrl import exact, risk
from steadyrl.agents.vpg import VPG, VPGSettings
from steadyrl.batch import batch_of_pairs, batch_of_steps
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.mdp import FiniteMDP
from steadyrl.networks import SoftmaxTable, ValueTable
from steadyrl.risk import MEASURES, Sample
from steadyrl.rollout import Tables, play, sample_episodes

UP, DOWN, LEFT, RIGHT = range(4)
CELLS = {UP: -6, DOWN: 6, LEFT: -1, RIGHT: 1}
POLICY_SEED, OLDER_SEED = 1, 2
GRID = 20_000
"""More values than the sums of rewards here can have, so that none is rounded and the truth is exact."""
LIMIT = 4
"""How many standard errors a mean may be away from the truth."""


class Case:
    """A process, the policy to differentiate at, an older policy near it, and episodes of both."""

    def __init__(self, mdp, gamma, logits, episodes):
        self.mdp, self.gamma, self.logits, self.episodes = mdp, gamma, logits, episodes
        self.policy = softmax(logits, axis=-1)
        self.gradient = cache(lambda objective: exact.gradient(objective, mdp, logits, gamma, GRID))

    @cached_property
    def distribution(self):
        return exact.return_distribution(self.mdp, self.policy, self.gamma, GRID)

    @cached_property
    def older_logits(self):
        """A step of 1 back along the gradient of the mean: far enough that its returns are distributed otherwise."""
        back = -self.gradient("mean")
        return self.logits + back / np.linalg.norm(back)

    @cached_property
    def batch(self):
        """All episodes as one batch, pair by pair."""
        return self._play(self.logits, POLICY_SEED)

    @cached_property
    def older_batch(self):
        return self._play(self.older_logits, OLDER_SEED)

    @cached_property
    def visits(self):
        return _rows(self.batch.visits)

    @cached_property
    def older_visits(self):
        return _rows(self.older_batch.visits)

    @cached_property
    def rho(self):
        """How much likelier each episode of the older policy is under the policy."""
        shift = log_softmax(self.logits, axis=-1) - log_softmax(self.older_logits, axis=-1)
        return np.exp(self.older_visits @ shift.ravel())

    def scores(self, visits, on):
        """[episodes, directions]: sum_t grad log pi(a_t|s_t), projected, from how often each pair occurred."""
        tables = on.reshape(-1, *self.policy.shape)
        centred = tables - (self.policy * tables).sum(axis=-1, keepdims=True)
        return visits @ _rows(centred).T

    def _play(self, logits, seed):
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(self.episodes))
        policy = jnp.asarray(softmax(logits, axis=-1), jnp.float32)
        return _play(Tables.of(self.mdp), policy, keys, self.mdp.horizon, self.gamma)


@partial(jax.jit, static_argnames=("horizon", "gamma"))
def _play(tables, policy, keys, horizon, gamma):
    batch = batch_of_pairs(tables, play(tables, policy[None], keys[None], horizon), gamma)
    return jax.tree.map(lambda x: x[0], batch)


def _rows(x):
    return np.asarray(x, np.float64).reshape(len(x), -1)


@cache
def case(name):
    if name == "maze":
        # gamma = 1: the exact distribution needs no grid, and rewards to go are the exact gradient of the mean.
        return Case(Maze().mdp, 1.0, towards_the_goal(), episodes=42_000)
    # Four steps with few rewards: the exact distribution needs no grid at any gamma.
    rng, shape = np.random.default_rng(3), (3, 3, 2)
    mdp = FiniteMDP(
        next_state=rng.integers(3, size=shape),
        reward=rng.normal(1, 3, size=shape),
        ends=rng.random(shape) < 0.2,
        probability=rng.dirichlet(np.ones(2), size=shape[:2]),
        initial=rng.dirichlet(np.ones(3)),
        horizon=4,
    )
    gamma = {"random": 1.0, "discounted": 0.9}[name]
    return Case(mdp, gamma, rng.normal(size=(3, 3)), episodes=120_000)


@pytest.fixture
def of(request):
    return case(request.param)


def towards_the_goal():
    """Likely to follow the white path or the short one, so that most episodes reach the goal and few states matter."""
    logits = np.zeros((36, 4))
    for path in ([UP] * 5 + [RIGHT] * 5 + [DOWN], [RIGHT] * 5 + [UP] * 4):
        cell = 30
        for move in path:
            logits[cell, move] += 2
            cell += CELLS[move]
    return logits


def directions(truth, random=7):
    """[1 + random, S * A]: unit vectors, that of the truth first."""
    some = np.random.default_rng(11).normal(size=(1 + random, truth.size))
    some[0] = truth.ravel()
    return some / np.linalg.norm(some, axis=-1, keepdims=True)


def standard_errors(estimates):
    return estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))


def assert_unbiased(estimates, truth, on, precision=0.1):
    """The mean over the batches of `estimates` [batches, directions] is `truth` [S, A]; `on` are the directions."""
    expected, error = on @ truth.ravel(), standard_errors(estimates)
    assert error[0] < precision * abs(expected[0]), "too imprecise to tell a wrong factor: play more episodes"
    z = (estimates.mean(axis=0) - expected) / error
    assert np.all(np.abs(z) < LIMIT), z


def estimates_of(weights, scores):
    """[batches, directions]: sum_i weight_i score_i, for weights [batches, n] and scores [batches * n, directions]."""
    return np.einsum("bn,bnd->bd", weights, scores.reshape(*weights.shape, -1))


def in_batches(x, n):
    return np.asarray(x, np.float64).reshape(-1, n)


@pytest.mark.parametrize("of", ["maze", "random", "discounted"], indirect=True)
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
@pytest.mark.parametrize("of", ["maze", "random"], indirect=True)
def test_weights_are_unbiased(of, form, n):
    weights, divisor, objective = FORMS[form]
    truth = -of.gradient(objective)
    on = directions(truth)
    w = weights(in_batches(of.batch.returns, n)) / divisor(n)
    assert_unbiased(estimates_of(w, of.scores(of.visits, on)), truth, on)


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("form", ["gini", "double sampling"])
@pytest.mark.parametrize("of", ["maze", "random"], indirect=True)
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


@pytest.mark.parametrize(("of", "n"), [("maze", 10), ("random", 5), ("random", 20)], indirect=["of"])
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


def fresh_sample(R):
    """Returns of the policy itself, all selected."""
    return Sample(R, jnp.ones_like(R), jnp.ones_like(R, bool))


@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("of", ["maze", "random"], indirect=True)
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
@pytest.mark.parametrize("of", ["maze", "random"], indirect=True)
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


# The bias of the paper's form is known, and tested above.
@pytest.mark.parametrize("measure", sorted(MEASURES.keys() - {"gini_paper"}))
def test_every_registered_measure(measure):
    truth = -slope_of_value(MEASURES[measure].value, case("random"))
    on = directions(truth)
    w = weights_of(MEASURES[measure], MEASURES[measure].initial_state, in_batches(case("random").batch.returns, 30))
    assert_unbiased(estimates_of(w, case("random").scores(case("random").visits, on)), truth, on)


# Whole updates.


def vpg(of, measure=None, risk_aversion=0.0, **settings):
    S, A = of.logits.shape
    steps = {"policy_learning_rate": 1.0, "value_learning_rate": 1e-30, **settings}
    settings = VPGSettings(gamma=of.gamma, **steps).completed(tabular=True)
    return VPG(SoftmaxTable(S, A), measure, risk_aversion, settings, ValueTable(S))


def ascended(algorithm, learner, batch, sample):
    _, pull = jax.vjp(lambda theta: algorithm.log_prob(theta, batch), learner.theta)
    return algorithm.ascend(learner, batch, sample, pull)


def learner_at(algorithm, of, V):
    learner = algorithm.init(jax.random.key(0))
    return learner._replace(theta=jnp.asarray(of.logits, jnp.float32), phi=jnp.asarray(V, jnp.float32))


def ascents(algorithm, of, V, n):
    """[batches, S * A]: what one update of step size 1 adds to the parameters."""
    learner = learner_at(algorithm, of, V)
    batches = jax.tree.map(lambda x: x.reshape(-1, n, *x.shape[1:]), of.batch)

    def ascend(batch):
        return ascended(algorithm, learner, batch, fresh_sample(batch.returns)).theta - learner.theta

    return _rows(jax.jit(jax.vmap(ascend))(batches))


UPDATES = {
    "mean": (None, 0.0, None),
    "mean and gini": ("gini", 1.2, "gini_deviation"),
    "mean and variance": ("variance", 0.02, "variance"),
}


@pytest.mark.parametrize(
    ("of", "update"),
    [*(("maze", update) for update in UPDATES), ("random", "mean and gini")],
    indirect=["of"],
)
def test_an_update_ascends_the_objective(of, update):
    measure, risk_aversion, penalty = UPDATES[update]
    truth = of.gradient("mean")
    if penalty:
        truth = truth - risk_aversion * of.gradient(penalty)
    on = directions(truth)
    algorithm = vpg(of, MEASURES[measure] if measure else None, risk_aversion)
    updates = ascents(algorithm, of, np.zeros(len(of.logits)), n=10)
    assert_unbiased(updates @ on.T, truth, on)


@pytest.mark.parametrize("of", ["maze", "random"], indirect=True)
def test_a_baseline_that_learns_keeps_the_mean_part_unbiased(of):
    # A wrong baseline, moving with every trajectory of the batch: each meets it as the ones before have left it.
    truth = of.gradient("mean")
    on = directions(truth)
    V = np.random.default_rng(4).normal(2, 3, size=len(of.logits))
    algorithm = vpg(of, value_learning_rate=0.2)
    assert not np.allclose(moved_value(algorithm, of, V), V, atol=0.1)
    assert_unbiased(ascents(algorithm, of, V, n=10) @ on.T, truth, on)


def moved_value(algorithm, of, V):
    batch = jax.tree.map(lambda x: x[:10], of.batch)
    return ascended(algorithm, learner_at(algorithm, of, V), batch, fresh_sample(batch.returns)).phi


class Face(NamedTuple):
    """A process as `sample_episodes` wants it."""

    mdp: FiniteMDP

    def facts(self, visits, ended):
        return {}


def update_by_hand(of, episodes, rho, selected, V, risk_aversion, value_step):
    """Algorithm 1's inner update as it is printed, trajectory by trajectory and step by step; policy step size 1."""
    R = episodes.rewards @ of.gamma ** np.arange(episodes.rewards.shape[1])
    count = selected.sum()
    w = np.zeros(len(R))
    w[selected] = risk.gini_weights_unbiased(R[selected], ratios=rho[selected]) / (count - 2)
    theta, V = np.array(of.logits), np.array(V, np.float64)
    for i in np.flatnonzero(selected):
        T = int(episodes.mask[i].sum())
        g, slope = 0.0, np.zeros_like(V)
        for t in reversed(range(T)):
            s, a = episodes.observations[i, t], episodes.actions[i, t]
            g = episodes.rewards[i, t] + of.gamma * g
            grad_log_pi = np.eye(len(of.policy[s]))[a] - of.policy[s]
            theta[s] += rho[i] * ((g - V[s]) / count + risk_aversion * w[i]) * grad_log_pi
            slope[s] += 2 * (V[s] - g) / T
        V -= value_step * slope
    return theta, V


def test_an_update_in_both_forms_of_a_batch_is_the_one_by_hand():
    of, n, V, risk_aversion, value_step = case("discounted"), 12, [-1, 0, 2], 0.5, 0.1
    episodes = sample_episodes(Face(of.mdp), of.policy, n, jax.random.key(POLICY_SEED))
    by_steps, by_pairs = batch_of_steps(episodes, of.gamma), jax.tree.map(lambda x: x[:n], of.batch)
    np.testing.assert_allclose(by_steps.returns, by_pairs.returns, rtol=1e-5, atol=1e-5)

    algorithm = vpg(of, MEASURES["gini"], risk_aversion, value_learning_rate=value_step)
    learner = learner_at(algorithm, of, V)
    # As if the policy had been updated since: ratios are far from 1, and some of them out of range.
    older = jnp.asarray(of.logits + np.random.default_rng(0).normal(size=of.logits.shape), jnp.float32)
    shift = log_softmax(of.logits, axis=-1) - log_softmax(np.asarray(older), axis=-1)
    rho_by_hand = np.exp((shift[episodes.observations, episodes.actions] * episodes.mask).sum(axis=-1))
    for batch in (by_steps, by_pairs):
        sampled = algorithm.policy.log_prob(older, batch.observations, batch.actions)
        log_pi = algorithm.log_prob(learner.theta, batch)
        rho, selected = algorithm.select(batch, log_pi - sampled)
        assert 2 < selected.sum() < n
        np.testing.assert_array_equal(selected, np.abs(rho_by_hand - 1) <= 0.5)
        np.testing.assert_allclose(rho[selected], rho_by_hand[selected], rtol=1e-5)
        after = jax.jit(partial(ascended, algorithm))(learner, batch, Sample(batch.returns, rho, selected))
        theta, phi = update_by_hand(of, episodes, rho_by_hand, np.asarray(selected), V, risk_aversion, value_step)
        np.testing.assert_allclose(after.theta, theta, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(after.phi, phi, rtol=1e-5, atol=1e-5)
        assert np.max(np.abs(after.theta - of.logits)) > 0.1
