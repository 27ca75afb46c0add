"""Algorithm 1: `VPGUpdate` against the plain NumPy reference, and where the two readings of it part."""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from maze_batches import MAZE, by_pairs, by_steps, sampled_episodes, trained_agent, update
from reference import algorithm_1
from reference.algorithm_1 import softmax

from steadyrl.agents import MVO, MeanGini, Reinforce

N = 50


def metrics_by_hand(theta, V, episodes, s, updates):
    """Metrics of the last of so many updates of the paper's form, and of the policy after it."""
    theta, V, old_log_pi, n = theta.copy(), V.copy(), np.log(softmax(theta)), len(episodes)
    algorithm_1.update(theta, V, episodes, SimpleNamespace(**{**vars(s), "inner_updates": updates - 1}))
    pi = softmax(theta)
    each = [tuple(map(np.array, zip(*steps, strict=True))) for steps in episodes]
    g = [algorithm_1.rewards_to_go(r, s.gamma) for _, _, r in each]
    rho = np.exp([(np.log(pi) - old_log_pi)[state, a].sum() for state, a, _ in each])
    D = np.flatnonzero(np.abs(rho - 1) <= s.ratio_range)
    eta = np.zeros(n)
    eta[D] = algorithm_1.gini_eta(np.array([g_i[0] for g_i in g])[D]) / (len(D) - 1)
    loss, ascent, errors = 0.0, np.zeros_like(theta), []
    for i in D:
        state, a, _ = each[i]
        errors.append((V[state] - g[i]) ** 2)
        weight = rho[i] * ((g[i] - V[state]) / len(D) + s.risk_aversion * eta[i])
        loss -= (weight * np.log(pi)[state, a]).sum()
        ascent += algorithm_1.score(pi, state, a, weight)
        np.add.at(V, state, -s.value_learning_rate * 2 * (V[state] - g[i]) / len(g[i]))
    after = softmax(theta + s.policy_learning_rate * ascent)
    states, actions = (np.concatenate([one[k] for one in each]) for k in (0, 1))
    log_ratio = (np.log(after) - old_log_pi)[states, actions]
    mse, targets = np.concatenate(errors).mean(), np.concatenate([g[i] for i in D])
    return len(D) / n, {
        "updates": updates,
        "policy_loss": loss,
        "gradient_norm": np.linalg.norm(ascent),
        "value_loss": mse,
        "explained_variance": 1 - mse / targets.var(),
        "entropy": -(after * np.log(after)).sum(axis=-1)[states].mean(),
        "approx_kl": (np.exp(log_ratio) - 1 - log_ratio).mean(),
        "risk_weight_mean": eta.mean(),
        "risk_weight_std": eta.std(),
    }


@pytest.mark.parametrize("form", [by_steps, by_pairs])
@pytest.mark.parametrize("rate", [1e-4, 5e-3], ids=["all updates", "stops early"])
def test_the_update_is_algorithm_1(form, rate):
    agent, learner = trained_agent(MeanGini, estimator="paper", policy_learning_rate=rate)
    episodes, M = sampled_episodes(learner.theta, N, seed=1), agent.settings.inner_updates
    updated, metrics = update(agent.algorithm, learner, form(episodes, agent.gamma))

    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    steps, settings = algorithm_1.steps_of(episodes), SimpleNamespace(**dataclasses.asdict(agent.settings))
    share, expected = metrics_by_hand(theta, V, steps, settings, int(metrics["updates"]))
    assert algorithm_1.update(theta, V, steps, settings) == metrics["updates"]
    assert (metrics["updates"] < M) == (share < 1) == (rate > 1e-3)
    assert_moved_alike(updated, learner, theta, V)
    assert metrics.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=5e-3, atol=1e-6, err_msg=name)


def test_the_unbiased_estimator():
    """They correct both members of a pair by their ratios; the reference knows ratios of 1, those of one update."""
    agent, learner = trained_agent(MeanGini, inner_updates=1)
    episodes = sampled_episodes(learner.theta, N, seed=1)
    updated, _ = update(agent.algorithm, learner, by_steps(episodes, agent.gamma))
    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    algorithm_1.update(theta, V, algorithm_1.steps_of(episodes), agent.settings)
    assert_moved_alike(updated, learner, theta, V)


def assert_moved_alike(updated, learner, theta, V):
    moved = theta - np.asarray(learner.theta)
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(updated.theta - learner.theta, moved, atol=2e-3 * np.abs(moved).max())
    np.testing.assert_allclose(updated.phi, V, rtol=1e-4, atol=1e-3)


def test_both_forms_of_a_batch_give_the_same_update():
    agent, learner = trained_agent(MeanGini, estimator="paper")
    episodes = sampled_episodes(learner.theta, N, seed=2)
    (from_steps, step_metrics), (from_pairs, pair_metrics) = (
        update(agent.algorithm, learner, form(episodes, agent.gamma)) for form in (by_steps, by_pairs)
    )
    assert step_metrics["updates"] == pair_metrics["updates"] > 1
    np.testing.assert_allclose(from_steps.theta, from_pairs.theta, atol=1e-5)
    np.testing.assert_allclose(from_steps.phi, from_pairs.phi, rtol=1e-4, atol=1e-4)


def test_no_update_when_too_few_trajectories_are_in_range():
    """With delta = 0 every trajectory is in range for the first update, whose ratios are 1, and none after it."""
    agent, learner = trained_agent(MeanGini, estimator="paper", ratio_range=0.0, policy_learning_rate=1e-2)
    episodes = sampled_episodes(learner.theta, N, seed=3)
    updated, metrics = update(agent.algorithm, learner, by_steps(episodes, agent.gamma))
    assert metrics["updates"] == 1
    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    settings = SimpleNamespace(**{**dataclasses.asdict(agent.settings), "inner_updates": 1})
    assert algorithm_1.update(theta, V, algorithm_1.steps_of(episodes), settings) == 1
    assert_moved_alike(updated, learner, theta, V)


@pytest.mark.parametrize("form", [by_steps, by_pairs])
def test_ratios_out_of_all_bounds_do_no_harm(form):
    """A step that makes some trajectories infinitely likelier: they are deselected, and nothing becomes NaN."""
    settings = {"policy_learning_rate": 10.0, "value_learning_rate": 1e-3, "least_selected": 0.0}
    agent, learner = trained_agent(MeanGini, estimator="paper", **settings)
    batch = form(sampled_episodes(learner.theta, N, seed=3), agent.gamma)
    updated, metrics = update(agent.algorithm, learner, batch)
    assert 1 <= metrics["updates"] < agent.settings.inner_updates
    assert np.all(np.isfinite(updated.theta))
    assert not any(np.isnan(value) for value in metrics.values()), metrics


@pytest.mark.parametrize("kind", [MeanGini, MVO])
def test_without_risk_aversion_an_update_is_that_of_reinforce_bit_for_bit(kind):
    (neutral, learner), (same, _) = trained_agent(Reinforce), trained_agent(kind, risk_aversion=0.0)
    batch = by_steps(sampled_episodes(learner.theta, N, seed=4), neutral.gamma)
    (expected, _), (updated, metrics) = (update(agent.algorithm, learner, batch) for agent in (neutral, same))
    assert metrics["updates"] > 1
    for x, y in zip(jax.tree.leaves(updated), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)
    averse, _ = trained_agent(MeanGini, estimator="paper")
    assert not np.array_equal(update(averse.algorithm, learner, batch)[0].theta, expected.theta)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MeanGini, MVO])
def test_without_risk_aversion_training_is_that_of_reinforce_bit_for_bit(kind):
    neutral, same = Reinforce(MAZE, seed=4), kind(MAZE, seed=4, risk_aversion=0.0)
    for agent in (neutral, same):
        agent.learn(total_episodes=500, progress_bar=False)
    np.testing.assert_array_equal(neutral.learner.theta, same.learner.theta)
    np.testing.assert_array_equal(neutral.learner.phi, same.learner.phi)
    averse = kind(MAZE, seed=4, policy_learning_rate=1e-4).learn(total_episodes=500, progress_bar=False)
    assert not np.array_equal(neutral.learner.theta, averse.learner.theta)
