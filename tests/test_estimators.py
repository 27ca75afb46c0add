"""Every gradient estimator against the exact gradient, within its own standard error.

Many batches of episodes are played by the compiled collector. Estimates are projected on the direction of the exact
gradient, where they must be precise enough to tell a wrong sign or factor, and on fixed random directions. On each, the
mean over all batches must lie within 4 standard errors of the truth. With some 400 such comparisons, right estimators
would fail one of them for about 1 seed in 40; the seeds here are fixed.
"""

from functools import cache, cached_property, partial

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
        distribution = exact.return_distribution(self.mdp, self.policy, self.gamma, GRID)
        assert distribution.error == 0, "the truth must not come from a grid"
        return distribution

    @cached_property
    def older_logits(self):
        """A step of 1 back along the gradient of the mean: far enough that its returns are distributed otherwise."""
        back = -self.gradient("mean")
        return self.logits + back / np.linalg.norm(back)

    @cached_property
    def batch(self):
        """All episodes as one batch, pair by pair."""
        return self._play(self.logits, seed=1)

    @cached_property
    def older_batch(self):
        return self._play(self.older_logits, seed=2)

    @cached_property
    def rho(self):
        """How much likelier each episode of the older policy is under the policy."""
        shift = log_softmax(self.logits, axis=-1) - log_softmax(self.older_logits, axis=-1)
        return np.exp(_rows(self.older_batch.visits) @ shift.ravel())

    def scores(self, on, batch=None):
        """[episodes, directions]: sum_t grad log pi(a_t|s_t), projected; of the policy's own batch if not another."""
        tables = on.reshape(-1, *self.policy.shape)
        centred = tables - (self.policy * tables).sum(axis=-1, keepdims=True)
        return _rows((batch or self.batch).visits) @ _rows(centred).T

    def _play(self, logits, seed):
        keys = jax.random.split(jax.random.key(seed), self.episodes)
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
    gamma = {"random": 0.9, "undiscounted": 1.0}[name]
    return Case(mdp, gamma, rng.normal(size=(3, 3)), episodes=120_000)


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


# Weights that need the returns alone.

FORMS = {
    "gini": (risk.gini_weights_unbiased, lambda n: n - 2, "gini_deviation"),
    "double sampling": (risk.double_sampling_weights, lambda n: n, "variance"),
    "variance": (risk.variance_weights, lambda n: (n - 1) * (n - 2) / n, "variance"),
}


@pytest.mark.parametrize("n", [3, 4, 10, 50])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["maze", "random"])
def test_weights_are_unbiased(name, form, n):
    weights, divisor, objective = FORMS[form]
    truth = -case(name).gradient(objective)
    on = directions(truth)
    w = weights(in_batches(case(name).batch.returns, n)) / divisor(n)
    assert_unbiased(estimates_of(w, case(name).scores(on)), truth, on)


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("form", ["gini", "double sampling"])
@pytest.mark.parametrize("name", ["maze", "random"])
def test_weights_are_unbiased_for_episodes_of_an_older_policy(name, form, n):
    weights, divisor, objective = FORMS[form]
    truth = -case(name).gradient(objective)
    on = directions(truth)
    rho = in_batches(case(name).rho, n)
    w = rho * weights(in_batches(case(name).older_batch.returns, n), ratios=rho) / divisor(n)
    assert_unbiased(estimates_of(w, case(name).scores(on, case(name).older_batch)), truth, on)


@pytest.mark.parametrize("form", ["gini", "double sampling"])
def test_one_ratio_of_a_pair_is_not_enough(form):
    # Weighting trajectory i by rho_i alone leaves its partner with the older policy.
    weights, divisor, objective = FORMS[form]
    truth = -case("random").gradient(objective)
    on = directions(truth)
    w = in_batches(case("random").rho, 10) * weights(in_batches(case("random").older_batch.returns, 10)) / divisor(10)
    estimates = estimates_of(w, case("random").scores(on, case("random").older_batch))
    z = (estimates.mean(axis=0) - on @ truth.ravel()) / standard_errors(estimates)
    assert np.max(np.abs(z)) > LIMIT, "the test above could not tell"


def test_double_sampling_of_sorted_returns_is_biased():
    # Sorted, the half that estimates the mean is the lower half, and is not independent of the other.
    truth = -case("random").gradient("variance")
    on = directions(truth)
    R, scores = in_batches(case("random").batch.returns, 10), case("random").scores(on).reshape(-1, 10, len(on))
    order = np.argsort(R, axis=-1)
    w = risk.double_sampling_weights(np.take_along_axis(R, order, axis=-1)) / 10
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


@pytest.mark.parametrize(("name", "n"), [("maze", 10), ("random", 5), ("random", 20)])
def test_the_papers_weights_are_biased_as_derived(name, n):
    # eta_i = B - (1/n) sum_j |R_i - R_j|. The sum gives -(n - 1) grad D; B = max R - mean R, which is no baseline since
    # it depends on trajectory i, gives E[B sum_i score_i] = grad E[B].
    bias = case(name).gradient(lead_of_the_best(n)) / (n - 1)
    minus_grad_D = -case(name).gradient("gini_deviation")
    on = directions(bias)
    w = risk.gini_weights(in_batches(case(name).batch.returns, n)) / (n - 1)
    estimates = estimates_of(w, case(name).scores(on))
    assert_unbiased(estimates, minus_grad_D + bias, on, precision=np.inf)
    # The bias is there, and has this sign and size.
    seen = estimates[:, 0].mean() - on[0] @ minus_grad_D.ravel()
    assert seen > 2 * LIMIT * standard_errors(estimates)[0]
    assert seen == pytest.approx(np.linalg.norm(bias), rel=0.25)


# Weights with running estimates, and weights that hold the mean.


def weights_of(measure, state, R):
    """[batches, n]: the weights of each batch of `R`, all from the same state."""

    def each(R):
        return measure.weights(Sample(R, jnp.ones_like(R), jnp.ones_like(R, bool)), state)[0]

    return np.asarray(jax.jit(jax.vmap(each))(jnp.asarray(R, jnp.float32)), np.float64)


@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("name", ["maze", "random"])
def test_tamar_at_the_true_moments(name, n):
    # The penalty is (V - b)+^2, and its gradient 2 (V - b)+ grad V.
    J, V = case(name).distribution.mean, case(name).distribution.variance
    measure = risk.tamar(threshold=0.4 * V, learning_rate=0.1, mean=J, spread=V)
    truth = -2 * 0.6 * V * case(name).gradient("variance")
    on = directions(truth)
    w = weights_of(measure, measure.initial_state, in_batches(case(name).batch.returns, n))
    assert_unbiased(estimates_of(w, case(name).scores(on)), truth, on)


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize("name", ["maze", "random"])
def test_mvp_at_its_best_dual(name, n, with_mean):
    # 2 y grad E - grad E[R^2]; learning_rate = 0 keeps y where it is.
    risk_aversion, mean = 0.03, case(name).distribution.mean
    y = mean + 1 / (2 * risk_aversion) if with_mean else mean
    measure = risk.mvp(risk_aversion, learning_rate=0.0, dual=y, with_mean=with_mean)
    truth = -case(name).gradient("variance")
    if with_mean:
        truth = (case(name).gradient("mean") + risk_aversion * truth) / risk_aversion
    on = directions(truth)
    w = weights_of(measure, measure.initial_state, in_batches(case(name).batch.returns, n))
    assert_unbiased(estimates_of(w, case(name).scores(on)), truth, on)


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
    assert_unbiased(estimates_of(w, case("random").scores(on)), truth, on)


# Whole updates.


def vpg(of, measure=None, risk_aversion=0.0, **settings):
    S, A = of.logits.shape
    steps = {"policy_learning_rate": 1.0, "value_learning_rate": 1e-30, **settings}
    return VPG(SoftmaxTable(S, A), ValueTable(S), measure, risk_aversion, VPGSettings(gamma=of.gamma, **steps))


def learner_at(algorithm, of, V):
    learner = algorithm.init(jax.random.key(0))
    return learner._replace(theta=jnp.asarray(of.logits, jnp.float32), phi=jnp.asarray(V, jnp.float32))


def ascents(algorithm, of, V, n):
    """[batches, S * A]: what one update of step size 1 adds to the parameters."""
    learner = learner_at(algorithm, of, V)
    batches = jax.tree.map(lambda x: x.reshape(-1, n, *x.shape[1:]), of.batch)

    def ascend(batch):
        return algorithm.ascend(learner, batch, jnp.ones(n), jnp.ones(n, bool)).theta - learner.theta

    return _rows(jax.jit(jax.vmap(ascend))(batches))


UPDATES = {
    "mean": (None, 0.0, None),
    "mean and gini": ("gini", 1.2, "gini_deviation"),
    "mean and variance": ("variance", 0.02, "variance"),
}


@pytest.mark.parametrize(
    ("name", "update"), [*(("maze", u) for u in UPDATES), ("undiscounted", "mean"), ("undiscounted", "mean and gini")]
)
def test_an_update_ascends_the_objective(name, update):
    measure, risk_aversion, penalty = UPDATES[update]
    truth = case(name).gradient("mean")
    if penalty:
        truth = truth - risk_aversion * case(name).gradient(penalty)
    on = directions(truth)
    algorithm = vpg(case(name), MEASURES[measure] if measure else None, risk_aversion)
    updates = ascents(algorithm, case(name), np.zeros(len(case(name).logits)), n=10)
    assert_unbiased(updates @ on.T, truth, on)


@pytest.mark.parametrize("name", ["maze", "undiscounted"])
def test_a_baseline_that_learns_keeps_the_mean_part_unbiased(name):
    # A wrong baseline, moving with every trajectory of the batch: each meets it as the ones before have left it.
    truth = case(name).gradient("mean")
    on = directions(truth)
    V = np.random.default_rng(4).normal(2, 3, size=len(case(name).logits))
    algorithm = vpg(case(name), value_learning_rate=0.2)
    assert not np.allclose(moved_value(algorithm, case(name), V), V, atol=0.1)
    assert_unbiased(ascents(algorithm, case(name), V, n=10) @ on.T, truth, on)


def moved_value(algorithm, of, V):
    batch = jax.tree.map(lambda x: x[:10], of.batch)
    return algorithm.ascend(learner_at(algorithm, of, V), batch, jnp.ones(10), jnp.ones(10, bool)).phi


class MazeFace:
    """The maze as `sample_episodes` wants it."""

    mdp = Maze().mdp

    def facts(self, visits, ended):
        return {}


def test_both_forms_of_a_batch_give_the_same_update():
    of, n, key = case("maze"), 12, jax.random.key(9)
    episodes = sample_episodes(MazeFace(), of.policy, n, key)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
    by_pairs = _play(Tables.of(of.mdp), jnp.asarray(of.policy, jnp.float32), keys, of.mdp.horizon, 0.99)
    by_steps = batch_of_steps(episodes, 0.99)
    np.testing.assert_allclose(by_steps.returns, by_pairs.returns, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(by_steps.lengths, by_pairs.lengths)

    # Steps so long that the second and third update see ratios far from 1, some of them out of range.
    settings = {"policy_learning_rate": 5e-3, "value_learning_rate": 0.1, "inner_updates": 3, "least_selected": 0.2}
    algorithm = vpg(of, MEASURES["gini"], risk_aversion=0.5, **settings)
    learner = learner_at(algorithm, of, np.linspace(-5, 5, 36))
    (stepwise, updates), (pairwise, as_many) = (
        jax.jit(algorithm.update)(learner, batch) for batch in (by_steps, by_pairs)
    )
    assert updates == as_many == 3
    np.testing.assert_allclose(stepwise.theta, pairwise.theta, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(stepwise.phi, pairwise.phi, rtol=1e-4, atol=1e-4)
    sampled = algorithm.policy.log_prob(learner.theta, by_steps.observations, by_steps.actions)
    _, selected = algorithm.select(stepwise, by_steps, sampled)
    assert 2 < selected.sum() < n
