"""Updates for a range of lambdas: their direction, and that groups of episodes are never mixed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from maze_batches import MAZE, by_pairs, by_steps, sampled_episodes

from steadyrl import MeanGini
from steadyrl.rollouts.acting import with_levels
from steadyrl.training.batch import EveryState

named = pytest.mark.parametrize
GROUPS, EACH, STATES, ACTIONS = 4, 8, 36, 4
N = GROUPS * EACH
LAMBDAS = np.array([0.3, 0.7, 1.5, 2.2])
ONE_STEP = {"optimiser": "sgd", "policy_learning_rate": 1.0, "value_learning_rate": 1e-30, "inner_updates": 1}
"""Steps that are the gradient, with values that stay as they are."""


def random_tables(seed=0):
    """Policy, values and quantiles."""
    rng = np.random.default_rng(seed)
    shapes = (STATES, ACTIONS), (STATES,), (STATES, 8)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def dialled_agent(**settings):
    """Its tables are the same at all knots, and so at all levels."""
    agent = MeanGini(MAZE, risk_aversion=(0, 3), episodes_per_update=N, **{**ONE_STEP, **settings})
    theta, phi, quantiles = (jnp.broadcast_to(x, (4, *x.shape)) for x in random_tables())
    risk = agent.learner.risk._replace(parameters=quantiles)
    return agent, agent.learner._replace(theta=theta, phi=phi, risk=risk)


def plain_agent(risk_aversion, **settings):
    """With the same tables, for one lambda."""
    shared = {"episodes_per_update": EACH, "returns_remembered": 0}
    agent = MeanGini(MAZE, risk_aversion=risk_aversion, **shared, **{**ONE_STEP, **settings})
    theta, phi, quantiles = random_tables()
    risk = agent.learner.risk._replace(parameters=quantiles)
    return agent, agent.learner._replace(theta=theta, phi=phi, risk=risk)


def group_of(tree, g):
    return jax.tree.map(lambda x: x[g * EACH : (g + 1) * EACH], tree)


def with_levels_of(batch, levels, pair_by_pair):
    """The batch of a plain agent as one with a dial sees it."""
    seen = with_levels(jnp.asarray(batch.steps.observations), levels, of_states=True)
    observations = EveryState(levels) if pair_by_pair else seen
    return batch._replace(observations=observations, steps=batch.steps._replace(observations=seen), levels=levels)


@pytest.fixture(scope="module")
def episodes():
    return sampled_episodes(random_tables()[0], N, seed=3)


@named("form", [by_steps, by_pairs])
def test_the_direction_is_the_mean_of_those_of_agents_with_one_lambda(form, episodes):
    """The tables of the knots add up with weights that add up to 1, so their steps add up to that of one table."""
    agent, learner = dialled_agent()
    batch, levels = form(episodes, 0.99), jnp.repeat(jnp.log1p(jnp.asarray(LAMBDAS, jnp.float32)), EACH)
    moved, _ = jax.jit(agent.algorithm.update)(learner, with_levels_of(batch, levels, form is by_pairs))
    steps = []
    for g, risk_aversion in enumerate(LAMBDAS):
        plain, start = plain_agent(float(risk_aversion))
        after, _ = jax.jit(lambda algorithm, *given: algorithm.update(*given))(
            plain.algorithm, start, group_of(batch, g)
        )
        steps.append(np.asarray(after.theta - start.theta))
    np.testing.assert_allclose((moved.theta - learner.theta).sum(axis=0), np.mean(steps, axis=0), atol=2e-4)
    assert np.abs(steps[0] - steps[-1]).max() > 0.1, "lambda makes a difference"


def test_what_a_group_learns_goes_to_the_knots_beside_its_level(episodes):
    agent, learner = dialled_agent()
    knots = agent.algorithm.policy.knots
    level = knots.low + (knots.high - knots.low) / 6  # In the middle between the first and the second.
    batch = with_levels_of(by_pairs(episodes, 0.99), jnp.full(N, level, jnp.float32), True)
    moved, _ = jax.jit(agent.algorithm.update)(learner, batch)
    step = np.asarray(moved.theta - learner.theta)
    np.testing.assert_allclose(step[0], step[1], rtol=1e-3, atol=1e-5)
    assert np.abs(step[0]).max() > 1e-3
    assert not step[2:].any()


def other_returns(episodes, g):
    """The same episodes, with other rewards in group `g`."""
    rewards = np.array(episodes.rewards)
    rewards[g * EACH : (g + 1) * EACH] *= np.linspace(-3, 5, EACH)[:, None]
    return episodes._replace(rewards=rewards)


def test_returns_of_one_group_do_not_change_the_credit_of_another(episodes):
    agent, learner = dialled_agent()
    levels = jnp.repeat(agent.algorithm.dial.levels(3), EACH)
    credit = jax.jit(lambda batch: agent.algorithm.credit_steps(learner, batch)[1])
    before, after = (
        np.asarray(credit(with_levels_of(by_pairs(some, 0.99), levels, True)))
        for some in (episodes, other_returns(episodes, 2))
    )
    same = np.array([np.array_equal(group_of(before, g), group_of(after, g)) for g in range(GROUPS)])
    assert same.tolist() == [True, True, False, True]
    assert not before[:EACH].any(), "lambda 0"
    assert before[EACH:].any(axis=1).all()


def test_groups_would_be_mixed_without_a_dial(episodes):
    """The same comparison sees it if they are."""
    agent, learner = dialled_agent()
    mixing = dataclasses.replace(agent.algorithm, critic=dataclasses.replace(agent.algorithm.critic, groups=1))
    levels = jnp.repeat(agent.algorithm.dial.levels(3), EACH)
    before, after = (
        np.asarray(mixing.credit_steps(learner, with_levels_of(by_pairs(some, 0.99), levels, True))[1])
        for some in (episodes, other_returns(episodes, 2))
    )
    assert not np.array_equal(group_of(before, 3), group_of(after, 3))


def test_advantages_are_normalised_within_groups():
    agent = MeanGini(MAZE, mean="ppo", risk_aversion=(0, 3))
    rng = np.random.default_rng(0)
    advantages, mask = rng.normal(size=(32, 5)) * np.repeat([1, 10, 100, 1000], 8)[:, None], rng.random((32, 5)) < 0.7
    advantages, mask = jnp.asarray(advantages + 7, jnp.float32), jnp.asarray(mask, jnp.float32)
    normalised, scales = agent.algorithm.normalised(advantages, mask)
    plain = MeanGini(MAZE, mean="ppo").algorithm
    for g in range(GROUPS):
        own, scale = plain.normalised(group_of(advantages, g), group_of(mask, g))
        np.testing.assert_allclose(group_of(normalised, g), own, rtol=1e-5, atol=1e-6)
        assert float(scales[g]) == pytest.approx(float(scale), rel=1e-5)


def test_the_warmup_scales_every_lambda(episodes):
    agent, learner = dialled_agent(risk_warmup=100)
    halfway = learner.risk._replace(scale=learner.risk.scale._replace(episodes=jnp.float32(50)))
    done = learner.risk._replace(scale=learner.risk.scale._replace(episodes=jnp.float32(100)))
    batch = with_levels_of(by_pairs(episodes, 0.99), jnp.repeat(agent.algorithm.dial.levels(0), EACH), True)
    half, full = (agent.algorithm.credit_steps(learner._replace(risk=r), batch)[1] for r in (halfway, done))
    np.testing.assert_allclose(half, full / 2, rtol=1e-5)
    assert full.any()
