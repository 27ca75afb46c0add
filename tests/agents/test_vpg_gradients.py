"""Whole updates of Algorithm 1 against the exact gradient of the objective, and by hand with ratios."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradient_cases import POLICY_SEED, assert_unbiased, case, directions, fresh_sample, rows
from maze_batches import episode_batch
from scipy.special import log_softmax

from steadyrl import risk
from steadyrl.agents.networks import SoftmaxTable, ValueTable
from steadyrl.agents.settings import EnvKind
from steadyrl.agents.vpg import VPGSettings, VPGUpdate
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.risk import MEASURES, Sample
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.training.batch import batch_from_episodes

MAZE = pytest.param("maze", marks=pytest.mark.slow)
"""Longer episodes of more states; the random process has all that the estimators depend on."""


@pytest.fixture
def of(request):
    return case(request.param)


def vpg(of, measure=None, risk_aversion=0.0, **settings):
    S, A = of.logits.shape
    steps = {"optimiser": "sgd", "policy_learning_rate": 1.0, "value_learning_rate": 1e-30, **settings}
    settings = VPGSettings(gamma=of.gamma, **steps).resolve(EnvKind(tabular=True))
    return VPGUpdate(SoftmaxTable(S, A), measure, risk_aversion, settings, ValueTable(S))


def learner_at(algorithm, of, V):
    learner = algorithm.init(jax.random.key(0))
    return learner._replace(theta=jnp.asarray(of.logits, jnp.float32), phi=jnp.asarray(V, jnp.float32))


def one_step(algorithm, learner, batch, sample):
    """The learner after one step of policy and values."""
    log_prob, vjp = jax.vjp(lambda theta: algorithm.log_prob(theta, batch), learner.theta)
    return algorithm.step(learner, batch, sample, log_prob, vjp)[0]


@jax.jit
def many_steps(algorithm, learner, batches):
    """One step from each batch, all from the same learner."""
    return jax.vmap(lambda batch: one_step(algorithm, learner, batch, fresh_sample(batch.returns)))(batches)


def steps_from(algorithm, of, V, n):
    """What one update of step size 1 adds to the parameters [batches, S * A]; and the values after it [batches, S]."""
    learner = learner_at(algorithm, of, V)
    batches = jax.tree.map(lambda x: x.reshape(-1, n, *x.shape[1:]), of.batch)
    stepped = many_steps(algorithm, learner, batches)
    return rows(stepped.theta - learner.theta), np.asarray(stepped.phi)


UPDATES = {
    "mean": (None, 0.0, None),
    "mean and gini": ("gini", 1.2, "gini_deviation"),
    "mean and variance": ("variance", 0.02, "variance"),
}


@pytest.mark.parametrize(
    ("of", "update"),
    [
        *(pytest.param("maze", update, marks=pytest.mark.slow) for update in UPDATES),
        *(("random", update) for update in UPDATES),
    ],
    indirect=["of"],
)
def test_an_update_ascends_the_objective(of, update):
    measure, risk_aversion, penalty = UPDATES[update]
    truth = of.gradient("mean")
    if penalty:
        truth = truth - risk_aversion * of.gradient(penalty)
    on = directions(truth)
    algorithm = vpg(of, MEASURES[measure] if measure else None, risk_aversion)
    updates, _ = steps_from(algorithm, of, np.zeros(len(of.logits)), n=10)
    assert_unbiased(updates @ on.T, truth, on)


@pytest.mark.parametrize("of", [MAZE, "random"], indirect=True)
def test_a_baseline_that_learns_keeps_the_mean_part_unbiased(of):
    # A wrong baseline, moving with every trajectory of the batch: each meets it as the ones before have left it.
    truth = of.gradient("mean")
    on = directions(truth)
    V = np.random.default_rng(4).normal(2, 3, size=len(of.logits))
    algorithm = vpg(of, value_learning_rate=0.2)
    updates, values = steps_from(algorithm, of, V, n=10)
    assert not np.allclose(values[0], V, atol=0.1)
    assert_unbiased(updates @ on.T, truth, on)


@jax.jit
def selected_step(algorithm, learner, older, episodes):
    """Ratios, selection and one step, if the policy `older` had sampled the episodes."""
    batch = batch_from_episodes(episodes, algorithm.settings.gamma)
    log_ratios = algorithm.log_prob(learner.theta, batch) - algorithm.log_prob(older, batch)
    rho, selected = algorithm.select(batch, log_ratios)
    return rho, selected, one_step(algorithm, learner, batch, Sample(batch.returns, rho, selected))


class Model(NamedTuple):
    """A `FiniteModel` without metrics."""

    mdp: FiniteMDP

    def metrics(self, visits, ended):
        return {}


def update_by_hand(of, episodes, rho, selected, V, risk_aversion, value_step):
    """The inner update of Algorithm 1 as it is printed, trajectory by trajectory; policy step size 1."""
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


def test_an_update_with_ratios_is_the_one_by_hand():
    of, n, V, risk_aversion, value_step = case("discounted"), 12, [-1, 0, 2], 0.5, 0.1
    episodes = sample_episodes(Model(of.mdp), of.policy, n, jax.random.key(POLICY_SEED))
    algorithm = vpg(of, MEASURES["gini"], risk_aversion, value_learning_rate=value_step)
    learner = learner_at(algorithm, of, V)
    # As if the policy had been updated since: ratios are far from 1, and some of them out of range.
    older = jnp.asarray(of.logits + np.random.default_rng(0).normal(size=of.logits.shape), jnp.float32)
    shift = log_softmax(of.logits, axis=-1) - log_softmax(np.asarray(older), axis=-1)
    rho_by_hand = np.exp((shift[episodes.observations, episodes.actions] * episodes.mask).sum(axis=-1))
    rho, selected, after = selected_step(algorithm, learner, older, episode_batch(episodes, of.gamma))
    assert 2 < selected.sum() < n
    np.testing.assert_array_equal(selected, np.abs(rho_by_hand - 1) <= 0.5)
    np.testing.assert_allclose(rho[selected], rho_by_hand[selected], rtol=1e-5)
    theta, phi = update_by_hand(of, episodes, rho_by_hand, np.asarray(selected), V, risk_aversion, value_step)
    np.testing.assert_allclose(after.theta, theta, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after.phi, phi, rtol=1e-5, atol=1e-5)
    assert np.max(np.abs(after.theta - of.logits)) > 0.1
