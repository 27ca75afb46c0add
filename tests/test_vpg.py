"""Algorithm 1 against a second implementation of it, and where the two readings of it part."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import plain_maze
import pytest

from steadyrl.agents import MVO, MeanGini, Reinforce
from steadyrl.batch import Batch, batch_of_steps
from steadyrl.envs.guarded_maze import Maze
from steadyrl.rollout import sample_episodes

ENV = "steadyrl/GuardedMaze-v0"


def an_agent_on_its_way(kind=MeanGini, **settings):
    """An agent whose policy and values are not those it started with."""
    agent = kind(ENV, **settings)
    rng = np.random.default_rng(0)
    theta = jnp.asarray(rng.normal(size=(36, 4)), jnp.float32)
    return agent, agent.learner._replace(theta=theta, phi=jnp.asarray(rng.normal(size=36) * 10, jnp.float32))


@pytest.mark.parametrize("estimator", ["paper", "unbiased"])
@pytest.mark.parametrize("rate", [1e-4, 5e-3], ids=["all updates", "stops early"])
def test_the_update_is_algorithm_1(estimator, rate):
    agent, learner = an_agent_on_its_way(estimator=estimator, policy_learning_rate=rate)
    # The unbiased weights correct both members of a pair; the plain loop knows ratios of 1 alone.
    rounds = 1 if estimator == "unbiased" else agent.settings.inner_updates
    settings = dataclasses.replace(agent.settings, inner_updates=rounds)
    algorithm = dataclasses.replace(agent.algorithm, settings=settings)
    episodes = sample_episodes(Maze(), jax.nn.softmax(learner.theta), 50, jax.random.key(1))
    updated, count = algorithm.update(learner, batch_of_steps(episodes, settings.gamma))

    each = zip(episodes.observations, episodes.actions, episodes.rewards, episodes.mask, strict=True)
    steps = [[(int(s), int(a), float(r)) for s, a, r, m in zip(*one, strict=True) if m] for one in each]
    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    assert plain_maze.update(theta, V, steps, settings) == count
    assert (count < rounds) == (rate > 1e-3 and rounds > 1)
    moved = theta - np.asarray(learner.theta)
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(updated.theta - learner.theta, moved, atol=2e-3 * np.abs(moved).max())
    np.testing.assert_allclose(updated.phi, V, rtol=1e-4, atol=1e-3)


def test_steps_and_pairs_give_the_same_update():
    agent, learner = an_agent_on_its_way()
    episodes = sample_episodes(Maze(), jax.nn.softmax(learner.theta), 50, jax.random.key(2))
    steps = batch_of_steps(episodes, 0.999)
    where = (np.arange(50)[:, None], episodes.observations, episodes.actions)
    visits, g = np.zeros((50, 36, 4), np.float32), np.zeros((50, 36, 4), np.float32)
    np.add.at(visits, where, np.asarray(steps.visits)[..., 0])
    np.add.at(g, where, np.asarray(steps.rewards_to_go)[..., 0])
    pairs = Batch.of(None, None, jnp.asarray(visits), jnp.asarray(g), steps.returns, steps.lengths)
    by_steps, m_steps = agent.algorithm.update(learner, steps)
    by_pairs, m_pairs = agent.algorithm.update(learner, pairs)
    assert m_steps == m_pairs > 1
    np.testing.assert_allclose(by_steps.theta, by_pairs.theta, atol=1e-5)
    np.testing.assert_allclose(by_steps.phi, by_pairs.phi, rtol=1e-4, atol=1e-4)


def test_nothing_is_updated_when_too_few_trajectories_are_in_range():
    """With delta = 0 every trajectory is in range for the first update, whose ratios are 1, and none after it."""
    agent, learner = an_agent_on_its_way(ratio_range=0.0, policy_learning_rate=1e-2)
    episodes = sample_episodes(Maze(), jax.nn.softmax(learner.theta), 50, jax.random.key(3))
    updated, count = agent.algorithm.update(learner, batch_of_steps(episodes, 0.999))
    assert count == 1
    once = dataclasses.replace(agent.algorithm, settings=dataclasses.replace(agent.settings, inner_updates=1))
    np.testing.assert_array_equal(updated.theta, once.update(learner, batch_of_steps(episodes, 0.999))[0].theta)


def test_ratios_out_of_all_bounds_do_no_harm():
    """A step that makes some trajectories infinitely likelier: they are deselected, and nothing becomes NaN."""
    agent, learner = an_agent_on_its_way(policy_learning_rate=10.0, value_learning_rate=1e-3, least_selected=0.0)
    episodes = sample_episodes(Maze(), jax.nn.softmax(learner.theta), 50, jax.random.key(3))
    updated, count = agent.algorithm.update(learner, batch_of_steps(episodes, 0.999))
    assert 1 <= count < agent.settings.inner_updates
    assert np.all(np.isfinite(updated.theta))


@pytest.mark.parametrize("kind", [MeanGini, MVO])
def test_no_aversion_to_risk_is_reinforce_bit_for_bit(kind):
    neutral = Reinforce(ENV, seed=4).learn(total_episodes=500, progress_bar=False)
    averse = kind(ENV, seed=4, risk_aversion=0.0)
    averse.learn(total_episodes=500, progress_bar=False)
    np.testing.assert_array_equal(neutral.learner.theta, averse.learner.theta)
    np.testing.assert_array_equal(neutral.learner.phi, averse.learner.phi)
    still_averse = kind(ENV, seed=4, policy_learning_rate=1e-4).learn(total_episodes=500, progress_bar=False)
    assert not np.array_equal(neutral.learner.theta, still_averse.learner.theta)
