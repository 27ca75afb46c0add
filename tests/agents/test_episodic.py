"""Tamar and MVP: one update after each episode, against their rules written out by hand."""

import jax
import numpy as np
import pytest
from maze_batches import MAZE, by_steps, sampled_episodes, trained_agent, update
from reference.algorithm_1 import score, softmax

from steadyrl.agents import MVP, Tamar

OF_EPISODES = ("observations", "actions", "rewards", "mask", "last_observations", "terminated")


def batches(agent, theta, count):
    """Batches of episodes of the policy; for each also the return, the states and the actions of each episode."""
    n = agent.settings.n
    episodes = sampled_episodes(theta, count * n, seed=0)
    discounts = agent.gamma ** np.arange(episodes.rewards.shape[1])
    for start in range(0, count * n, n):
        own = {name: getattr(episodes, name)[start : start + n] for name in OF_EPISODES}
        batch = episodes._replace(**own)
        steps = [(s[m], a[m]) for s, a, m in zip(batch.observations, batch.actions, batch.mask > 0, strict=True)]
        yield by_steps(batch, agent.gamma), (batch.rewards * discounts).sum(axis=1), steps


def weighted_score(theta, weights, steps):
    """The sum over episodes of a weight times the score."""
    pi = softmax(theta)
    return sum(w * score(pi, s, a, np.ones(len(s))) for w, (s, a) in zip(weights, steps, strict=True))


def assert_moved_alike(learner, start, theta):
    moved = theta - start
    assert np.abs(moved).max() > 1e-4
    np.testing.assert_allclose(np.asarray(learner.theta) - start, moved, atol=1e-3 * np.abs(moved).max())


def test_tamars_rule():
    """For batches of two episodes, over which everything is averaged."""
    settings = {"initial_mean": -80.0, "initial_variance": 900.0, "threshold": 50.0, "moments_learning_rate": 0.01}
    agent, learner = trained_agent(
        Tamar, risk_aversion=1e-5, policy_learning_rate=1e-4, episodes_per_update=2, **settings
    )
    start, J, V = np.asarray(learner.theta, float), -80.0, 900.0
    theta = start
    for batch, R, steps in batches(agent, learner.theta, 5):
        eta = -2 * max(0, V - 50) * (R**2 - 2 * J * R) / 2
        weights = R / 2 + 1e-5 * eta
        gradient, log_pi = weighted_score(theta, weights, steps), np.log(softmax(theta))
        loss = -sum(w * log_pi[s, a].sum() for w, (s, a) in zip(weights, steps, strict=True))
        theta = theta + 1e-4 * gradient
        J, V = J + 0.01 * np.mean(R - J), V + 0.01 * np.mean(R**2 - J**2 - V)
        learner, metrics = update(agent.algorithm, learner, batch)
        np.testing.assert_allclose(learner.risk, (J, V), rtol=1e-5)
        pi, states = softmax(theta), np.concatenate([s for s, _ in steps])
        expected = {
            "updates": 1,
            "policy_loss": loss,
            "gradient_norm": np.linalg.norm(gradient),
            "entropy": -(pi * np.log(pi)).sum(axis=1)[states].mean(),
            "risk_weight_mean": eta.mean(),
            "risk_weight_std": eta.std(),
        }
        assert metrics.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(metrics[name], value, rtol=1e-3, err_msg=name)
    assert_moved_alike(learner, start, theta)


def test_mvps_rule():
    settings = {"risk_aversion": 0.05, "policy_learning_rate": 1e-6, "dual_learning_rate": 0.01, "initial_dual": -70.0}
    agent, learner = trained_agent(MVP, **settings)
    start, y = np.asarray(learner.theta, float), -70.0
    theta = start
    for batch, R, steps in batches(agent, learner.theta, 5):
        y = y + 0.01 * (2 * R[0] + 1 / 0.05 - 2 * y)
        theta = theta + 1e-6 * weighted_score(theta, 2 * y * R - R**2, steps)
        learner, _ = update(agent.algorithm, learner, batch)
        np.testing.assert_allclose(learner.risk, y, rtol=1e-5)
    assert_moved_alike(learner, start, theta)


def test_a_record_of_metrics_covers_fifty_episodes():
    seen = []
    agent = Tamar(MAZE, seed=1)

    def callback(local, _):
        seen.append(local["metrics"]["episodes"])

    agent.learn(total_episodes=180, callback=callback, progress_bar=False)
    assert [record["episodes"] for record in agent.history] == seen == [50, 100, 150, 180]
    assert agent.iterations == agent.episodes == 180
    assert "gini_deviation" in agent.history[0]
    whole = Tamar(MAZE, seed=1).learn(total_episodes=180, progress_bar=False)
    np.testing.assert_array_equal(whole.learner.theta, agent.learner.theta)
    np.testing.assert_array_equal(jax.tree.leaves(whole.learner.risk), jax.tree.leaves(agent.learner.risk))
    assert [r["return"] for r in whole.history] == [r["return"] for r in agent.history]


def test_mvp_needs_risk_aversion():
    with pytest.raises(ValueError, match="it must be above 0"):
        MVP(MAZE, risk_aversion=0)
