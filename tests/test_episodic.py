"""Tamar and MVP: one update after each episode, against their rules written out by hand."""

import jax
import numpy as np
import pytest

from steadyrl.agents import MVP, Tamar
from steadyrl.batch import batch_of_steps
from steadyrl.envs.guarded_maze import Maze
from steadyrl.rollout import sample_episodes

ENV = "steadyrl/GuardedMaze-v0"


def episodes_and_scores(agent, theta, count):
    """Episodes of the policy, and for each its return and its score at any later theta."""
    episodes = sample_episodes(Maze(), jax.nn.softmax(theta), count, jax.random.key(0))
    discounts = agent.gamma ** np.arange(episodes.rewards.shape[1])
    for i in range(count):
        steps = ("observations", "actions", "rewards", "mask")
        one = episodes._replace(**{name: getattr(episodes, name)[i : i + 1] for name in steps})
        s, a, m = (x[0] for x in (one.observations, one.actions, one.mask.astype(bool)))

        def score(pi, s=s[m], a=a[m]):
            total = np.zeros_like(pi)
            np.add.at(total, (s, a), 1.0)
            np.add.at(total, s, -pi[s])
            return total

        yield batch_of_steps(one, agent.gamma), float((one.rewards[0] * discounts).sum()), score


def softmax(theta):
    e = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def moved_alike(learner, start, theta):
    moved = theta - start
    assert np.abs(moved).max() > 1e-4
    np.testing.assert_allclose(np.asarray(learner.theta) - start, moved, atol=1e-3 * np.abs(moved).max())


def test_tamars_rule():
    settings = {"initial_mean": -80.0, "initial_variance": 900.0, "threshold": 50.0, "moments_learning_rate": 0.01}
    agent = Tamar(ENV, risk_aversion=1e-5, policy_learning_rate=1e-4, **settings)
    start = np.random.default_rng(0).normal(size=(36, 4)).astype(np.float32)
    learner, theta, J, V = agent.learner._replace(theta=jax.numpy.asarray(start)), start.astype(float), -80.0, 900.0
    for batch, R, score in episodes_and_scores(agent, start, 5):
        weight = R - 1e-5 * 2 * max(0, V - 50) * (R**2 - 2 * J * R)
        theta = theta + 1e-4 * weight * score(softmax(theta))
        J, V = J + 0.01 * (R - J), V + 0.01 * (R**2 - J**2 - V)
        learner, updates = agent.algorithm.update(learner, batch)
        assert updates == 1
        np.testing.assert_allclose(learner.risk, (J, V), rtol=1e-5)
    moved_alike(learner, start, theta)


def test_mvps_rule():
    agent = MVP(ENV, risk_aversion=0.05, policy_learning_rate=1e-6, dual_learning_rate=0.01, initial_dual=-70.0)
    start = np.random.default_rng(0).normal(size=(36, 4)).astype(np.float32)
    learner, theta, y = agent.learner._replace(theta=jax.numpy.asarray(start)), start.astype(float), -70.0
    for batch, R, score in episodes_and_scores(agent, start, 5):
        y = y + 0.01 * (2 * R + 1 / 0.05 - 2 * y)
        theta = theta + 1e-6 * (2 * y * R - R**2) * score(softmax(theta))
        learner, _ = agent.algorithm.update(learner, batch)
        np.testing.assert_allclose(learner.risk, y, rtol=1e-5)
    moved_alike(learner, start, theta)


def test_a_batch_of_episodes_is_averaged():
    agent = Tamar(ENV, risk_aversion=0.0, episodes_per_update=4, policy_learning_rate=1e-3)
    start = np.zeros((36, 4))
    batches = list(episodes_and_scores(agent, start, 4))
    expected = 1e-3 * np.mean([R * score(softmax(start)) for _, R, score in batches], axis=0)
    episodes = sample_episodes(Maze(), softmax(start), 4, jax.random.key(0))
    learner, _ = agent.algorithm.update(agent.learner, batch_of_steps(episodes, agent.gamma))
    np.testing.assert_allclose(learner.theta, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [Tamar, MVP])
def test_metrics_are_told_of_fifty_episodes_at_a_time(kind):
    seen = []
    agent = kind(ENV, seed=1)
    note = lambda told, _: seen.append(told["metrics"]["episodes"])  # noqa: E731
    agent.learn(total_episodes=180, callback=note, progress_bar=False)
    assert [record["episodes"] for record in agent.history] == seen == [50, 100, 150, 180]
    assert agent.iterations == agent.episodes == 180
    assert "gini_deviation" in agent.history[0]
    whole = kind(ENV, seed=1).learn(total_episodes=180, progress_bar=False)
    np.testing.assert_array_equal(whole.learner.theta, agent.learner.theta)
    np.testing.assert_array_equal(jax.tree.leaves(whole.learner.risk), jax.tree.leaves(agent.learner.risk))
    assert [r["return"] for r in whole.history] == [r["return"] for r in agent.history]


def test_mvp_needs_aversion_to_risk():
    with pytest.raises(ValueError, match="it must be above 0"):
        MVP(ENV, risk_aversion=0)
