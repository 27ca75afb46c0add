"""Credit for risk step by step: against exact gradients and its definition, and what its critic learns."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_steps import NETWORKS, steps_of
from gradient_cases import (
    LIMIT,
    Case,
    assert_unbiased,
    directions,
    estimates_of,
    fresh_sample,
    in_batches,
    rows,
    standard_errors,
    towards_the_goal,
)
from small_process import ACTIONS, HORIZON, PPO_STEP, STATES, Model, arbitrary_state, line_case, small_case, updates

from steadyrl import MeanGini, Reinforce, exact
from steadyrl.agents.networks.quantiles import QUANTILES, TABLE_QUANTILES, QuantileNetwork, QuantileTable
from steadyrl.agents.networks.running_scale import RunningScale
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.base.pytree import register_pytree
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.risk import MEASURES, Law
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.training.batch import EpisodeBatch, Steps, Weighting, batch_from_episodes
from steadyrl.training.returns import rewards_to_go

named = pytest.mark.parametrize
EXACT = {"gini": "gini_deviation", "variance": "variance"}
LEVELS, TABLE_LEVELS = ((np.arange(N) + 0.5) / N for N in (QUANTILES, TABLE_QUANTILES))
N = 3
"""Episodes in a batch: few, so that a law that includes the episode itself is far from the law of the others."""


def critic_of(of, measure="gini", decay=1.0, remembered=0, kind=RiskCritic):
    return kind(QuantileTable(of.mdp.n_states), MEASURES[measure], of.gamma, decay, 0.02, remembered)


@jax.jit
def credit_of(critic, state, returns, batches):
    """[batches, n, T]: the credit of each step, for batches that remember `returns` [batches, m]."""
    each = jax.vmap(lambda returns, steps: critic.advantages(state._replace(returns=returns), steps))
    return each(returns, batches)


def steps_in_batches(of, n, first=0):
    return jax.tree.map(lambda x: x[first:].reshape(-1, n, *x.shape[1:]), of.batch.steps)


def ascents(of, credit, batches, on):
    """[batches, directions]: sum_it credit_it score_it / n."""
    tables = on.reshape(-1, *of.policy.shape)
    scores = rows(tables - (of.policy * tables).sum(axis=-1, keepdims=True))
    credit, pairs = np.asarray(credit, np.float64), np.asarray(batches.pairs)
    return np.stack([(credit * row[pairs]).sum(axis=(1, 2)) for row in scores], axis=-1) / credit.shape[1]


# Without decay the estimate is unbiased, whatever the critic says.


@cache
def maze_case():
    """A short horizon, for the sake of speed: most episodes reach it."""
    return Case(Maze(horizon=15).mdp, 1.0, towards_the_goal(), episodes=18_000)


CASES = {"small": partial(small_case, 1.0), "discounted": partial(small_case, 0.9), "maze": maze_case}


@pytest.fixture
def of(request):
    return CASES[request.param]()


def estimates(of, measure, remembered, on, kind=RiskCritic):
    """From half of the episodes, the others being those that are remembered."""
    critic = critic_of(of, measure, remembered=remembered, kind=kind)
    half = of.episodes // 2
    batches, count = steps_in_batches(of, N, half), half // N
    returns = of.batch.returns[: count * remembered].reshape(count, remembered)
    state = arbitrary_state(critic, known=jnp.ones(remembered))
    return ascents(of, credit_of(critic, state, returns, batches), batches, on)


@named(
    ("of", "measure", "remembered"),
    [
        ("small", "gini", 0),
        ("small", "gini", 2),
        ("small", "variance", 0),
        ("discounted", "gini", 2),
        ("discounted", "variance", 0),
        ("maze", "gini", 0),
        ("maze", "variance", 2),
    ],
    indirect=["of"],
)
def test_any_critic_is_unbiased(of, measure, remembered):
    truth = -of.gradient(EXACT[measure])
    on = directions(truth)
    assert_unbiased(estimates(of, measure, remembered, on), truth, on, precision=0.15)


@named("of", ["small", "discounted", "maze"], indirect=True)
def test_any_critic_is_unbiased_for_cvar_if_the_quantile_is_known(of):
    truth = of.gradient(exact.cvar(0.1))
    on = directions(truth)
    F = of.distribution.probabilities.cumsum()
    quantile = of.distribution.values[np.searchsorted(F, 0.1)]
    critic, batches = critic_of(of, "cvar", remembered=1), steps_in_batches(of, N)
    # Known so well that the returns of the batch do not move it.
    state = arbitrary_state(critic, known=jnp.full(1, 1e6))
    returns = jnp.full((of.episodes // N, 1), quantile)
    assert_unbiased(ascents(of, credit_of(critic, state, returns, batches), batches, on), truth, on, precision=0.15)


class WithItself(RiskCritic):
    """Judges an episode by a law that its own return is a part of."""

    def laws_of_others(self, state, returns):
        n = returns.size
        return Law(jnp.broadcast_to(returns, (n, n)), jnp.full((n, n), 1 / n))


register_pytree(WithItself)


def test_a_law_that_includes_the_episode_itself_is_biased():
    of = small_case(1.0)
    truth = -of.gradient("gini_deviation")
    on = directions(truth)
    found = estimates(of, "gini", 0, on, WithItself)
    z = (found.mean(axis=0) - on @ truth.ravel()) / standard_errors(found)
    assert abs(z[0]) > LIMIT, "the test above could not tell"


# A right critic needs to look no further than one step ahead.


@pytest.mark.slow
def test_with_a_right_critic_one_step_of_credit_is_precise_and_nearly_unbiased():
    of, n = line_case(), 10
    truth = -of.gradient("gini_deviation")
    on = directions(truth)
    quantiles, pmf = [], np.ones(1)
    for sure, lottery in of.policy[::-1]:
        pmf = np.convolve(pmf, [lottery / 3, lottery / 3 + sure, lottery / 3])
        quantiles.insert(0, 2.0 * np.searchsorted(pmf.cumsum(), LEVELS) - pmf.size // 2)
    critic, batches = critic_of(of, decay=0.0), steps_in_batches(of, n)
    state = critic.init(jax.random.key(0))._replace(parameters=jnp.asarray(np.array(quantiles), jnp.float32))
    credit = credit_of(critic, state, jnp.zeros((of.episodes // n, 0)), batches)
    by_step = ascents(of, credit, batches, on)
    R = jnp.asarray(in_batches(of.batch.returns, n), jnp.float32)
    weights = jax.jit(jax.vmap(lambda R: MEASURES["gini"].weights(fresh_sample(R), ())[0]))(R)
    by_trajectory = estimates_of(np.asarray(weights, np.float64), of.scores(of.visits, on))
    assert 5 * by_step.var(axis=0).sum() < by_trajectory.var(axis=0).sum()
    error = np.abs(by_step.mean(axis=0) - on @ truth.ravel())
    assert np.all(error < 0.05 * np.linalg.norm(truth) + LIMIT * standard_errors(by_step))


# The definition


advantages = jax.jit(lambda critic, state, steps: critic.advantages(state, steps))
fit = jax.jit(lambda critic, state, steps: critic.fit(state, steps))


def advantages_by_hand(critic, state, steps):
    """Episode by episode and step by step."""
    R = [sum(critic.discount**t * r for t, r in enumerate(row)) for row in np.asarray(steps.rewards, float)]
    length = np.asarray(steps.mask.sum(axis=-1), int)
    times = jnp.broadcast_to(jnp.arange(steps.mask.shape[1]) / state.length, steps.mask.shape)
    quantiles = critic.network(state.parameters, steps.observations, times)
    rest, rewards = np.asarray(state.scale.mean + state.scale.std * quantiles, float), np.asarray(steps.rewards, float)
    expected = np.zeros(steps.mask.shape)
    for i, T in enumerate(length):
        others = np.array([*(R[:i] + R[i + 1 :]), *np.asarray(state.returns)[np.asarray(state.known) > 0]])
        law, so_far, U = Law(others, np.full(len(others), 1 / len(others))), 0.0, []
        for t in range(T):
            U.append(critic.measure.utility(so_far + critic.discount**t * rest[i, t], law).mean())
            so_far += critic.discount**t * rewards[i, t]
        changes = np.diff([*U, critic.measure.utility(np.array([so_far]), law)[0]])
        for t in range(T):
            expected[i, t] = sum(critic.decay**k * change for k, change in enumerate(changes[t:]))
    return expected


@named("measure", ["gini", "variance", "cvar"])
@named("network", NETWORKS)
def test_advantages_by_hand(network, measure):
    network = NETWORKS[network]
    critic, steps = RiskCritic(network, MEASURES[measure], 0.9, 0.7, 0.01, 4), steps_of([5, 1, 3, 6], 6, network)
    state = critic.init(jax.random.key(1))._replace(
        scale=RunningScale(jnp.float32(2), jnp.float32(13), jnp.float32(0)),
        length=jnp.float32(4),
        returns=jnp.array([3.0, -8.0, 0.0, 0.0]),
        known=jnp.array([1.0, 1.0, 0.0, 0.0]),
    )
    if isinstance(network, QuantileTable):
        state = state._replace(parameters=jax.random.normal(jax.random.key(2), (3, TABLE_QUANTILES)))
    expected = advantages_by_hand(critic, state, steps)
    found = advantages(critic, state, steps)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def padded(steps):
    """The same episodes in twice as many steps, whatever is observed in the others."""
    zeros = jnp.zeros_like(steps.mask)
    seen = jnp.concatenate([steps.observations, jnp.ones_like(steps.observations)], axis=1)
    return Steps(seen, *(jnp.concatenate([x, zeros], axis=1) for x in (steps.rewards, steps.mask)))


@named("network", NETWORKS)
def test_padding_does_not_change_advantages(network):
    network = NETWORKS[network]
    critic, steps = RiskCritic(network, MEASURES["gini"], 0.9, 0.7, 0.01, 0), steps_of([5, 1, 3, 6], 6, network)
    state = critic.init(jax.random.key(1))
    plain, extended = (np.asarray(advantages(critic, state, each)) for each in (steps, padded(steps)))
    np.testing.assert_allclose(extended[:, :6], plain, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(extended[:, 6:], 0)
    np.testing.assert_array_equal(plain[np.asarray(steps.mask) == 0], 0)


def test_padding_does_not_change_what_a_table_learns():
    critic = RiskCritic(NETWORKS["table"], MEASURES["gini"], 0.9, 0.7, 0.01, 5)
    steps, state = steps_of([5, 1, 3, 6], 6, critic.network), critic.init(jax.random.key(1))
    plain, extended = (jax.tree.leaves(fit(critic, state, each)) for each in (steps, padded(steps)))
    for x, y in zip(plain, extended, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


# Learning


@named(("network", "fits", "tolerance"), [("table", 150, 0.1), ("network", 80, 0.2)])
def test_the_critic_learns_the_quantiles_of_the_return_still_to_come(network, fits, tolerance):
    rng, n, discount = np.random.default_rng(2), 200, 0.5
    rewards = np.stack([rng.choice([0.0, 10.0], size=n) + rng.normal(size=n), rng.exponential(6, size=n)], axis=-1)
    states, mask = np.broadcast_to([0, 1], (n, 2)), jnp.ones((n, 2))
    table = network == "table"
    learner = QuantileTable(2) if table else QuantileNetwork.of(1)
    steps = Steps(jnp.asarray(states if table else states[..., None] * 1.0), jnp.asarray(rewards, jnp.float32), mask)
    critic = RiskCritic(learner, MEASURES["gini"], discount, 1.0, 0.02 if table else 1e-3, 0)
    fit_often = jax.jit(lambda state: jax.lax.scan(lambda state, _: critic.fit(state, steps), state, length=fits))
    state, losses = fit_often(critic.init(jax.random.key(0)))
    assert losses[-1] < losses[0]
    to_come = np.stack([rewards[:, 0] + discount * rewards[:, 1], rewards[:, 1]])
    np.testing.assert_allclose([state.scale.mean, state.scale.std], [to_come.mean(), to_come.std()], rtol=1e-3)
    times = jnp.arange(2) / state.length
    learned = state.scale.mean + state.scale.std * learner(state.parameters, steps.observations[0], times)
    true = np.quantile(to_come, TABLE_LEVELS if table else LEVELS, axis=-1).T
    # Few returns are seen of the outermost quantiles.
    error = np.abs(learned - true)[:, 2:-2] / to_come.std()
    assert error.mean() < tolerance / 2
    assert error.max() < 2 * tolerance


def test_the_latest_returns_are_remembered_the_most_recent_first():
    network, discount = QuantileTable(3), 0.5
    critic = RiskCritic(network, MEASURES["gini"], discount, 1.0, 0.01, 7)
    state, latest = critic.init(jax.random.key(0)), []
    for k in range(4):
        rewards = np.random.default_rng(k).normal(size=(3, 2))
        state, _ = fit(critic, state, steps_of([2, 1, 2], 2, network, rewards=rewards))
        latest = [*(rewards[:, 0] + discount * rewards[:, 1] * [1, 0, 1]), *latest][:7]
        padding = [0] * (7 - len(latest))
        np.testing.assert_allclose(state.returns, [*latest, *padding], rtol=1e-6)
        np.testing.assert_array_equal(state.known, [1] * len(latest) + padding)
        assert state.episodes == 3 * (k + 1)
    laws = critic.laws_of_others(state, jnp.array([10.0, 20.0]))
    np.testing.assert_allclose(laws.returns, np.broadcast_to([10, 20, *latest], (2, 9)), rtol=1e-6)
    np.testing.assert_allclose(laws.probabilities, (1 - np.eye(2, 9)) / 8, rtol=1e-6)


# Whole updates


def test_credit_is_the_same_pair_by_pair_and_step_by_step():
    of, n = small_case(1.0), 40
    pairs = jax.tree.map(lambda x: x[:n], of.batch)
    episodes = sample_episodes(Model(of.mdp), of.policy, n, jax.random.key(1))
    steps = batch_from_episodes(EpisodeBatch.of(episodes, 1.0, lambda x: x), 1.0)
    np.testing.assert_allclose(steps.returns, pairs.returns, rtol=1e-6)
    credit = jax.random.normal(jax.random.key(0), steps.steps.mask.shape) * steps.steps.mask
    weighting = Weighting(jnp.full(n, 1 / n), jax.random.normal(jax.random.key(3), (n, 1)))
    pairs, more = pairs.with_credit(credit[:, :HORIZON]), steps.with_credit(credit)
    by_pair = np.zeros((STATES, ACTIONS))
    weights = more.weights(weighting)
    np.add.at(by_pair, (np.asarray(more.observations)[..., None], np.asarray(more.actions)), np.asarray(weights))
    np.testing.assert_allclose(pairs.weights(weighting), by_pair, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(more.state_rewards_to_go, steps.state_rewards_to_go)
    assert not np.allclose(steps.weights(weighting), weights, atol=1e-3)


STEP = {"credit": "step", "risk_gae_lambda": 1.0, "returns_remembered": 0}
TRAJECTORY = {"credit": "trajectory", "risk_discount": 1.0}
FORMS = {
    "vpg, steps": STEP,
    "ppo, steps": STEP | PPO_STEP,
    "vpg, trajectories": TRAJECTORY,
    "ppo, trajectories": TRAJECTORY | PPO_STEP,
}


@named("form", FORMS)
def test_undiscounted_every_form_ascends_the_mean_less_the_gini_deviation(form):
    of = small_case(1.0)
    truth = of.gradient("mean") - of.gradient("gini_deviation")
    on = directions(truth)
    assert_unbiased(updates(MeanGini, 1.0, risk_aversion=1.0, **FORMS[form]) @ on.T, truth, on)


@named(("settings", "discount"), [({}, 0.9), ({"risk_discount": 1.0}, 1.0)], ids=["as in the paper", "undiscounted"])
def test_the_risk_of_trajectories_is_that_of_the_return_with_the_risk_discount(settings, discount):
    truth = -small_case(discount).gradient("gini_deviation")
    on = directions(truth)
    both = updates(MeanGini, 0.9, credit="trajectory", risk_aversion=2.0, **settings)
    assert_unbiased((both - updates(Reinforce, 0.9)) / 2 @ on.T, truth, on)


def test_the_mean_part_with_gamma_is_not_the_gradient_of_the_discounted_mean():
    of = small_case(0.9)
    truth = of.gradient("mean")
    on, found = directions(truth), updates(Reinforce, 0.9)
    z = (found @ on.T).mean(axis=0) - on @ truth.ravel()
    assert z[0] > 2 * LIMIT * standard_errors(found @ on.T)[0]
    # What it leaves out is gamma^t: later steps count as much as the first.
    batches = steps_in_batches(of, 5)
    weights = rewards_to_go(batches.rewards, 0.9) * 0.9 ** np.arange(HORIZON) * batches.mask
    assert_unbiased(ascents(of, weights, batches, on), truth, on)
