"""Algorithm 2 of the paper in plain NumPy: MG with PPO for a table, one trajectory and one step at a time.

The reference that tests compare `steadyrl.agents.ppo_update.PPOUpdate` with, parameters and metrics alike. Read
`update` beside the paper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from reference.algorithm_1 import rewards_to_go, softmax


class Steps(NamedTuple):
    """N steps of n trajectories."""

    trajectory: Any
    """[N]: the number of the trajectory."""
    s: Any
    a: Any
    A: Any
    """[N]: the advantage, normalized if the settings say so."""
    g: Any
    """[N]: what the value function is fitted to."""
    old_log_prob: Any


class Batch(NamedTuple):
    """What is known of a batch before its first update."""

    steps: Steps
    R: Any
    """[n]: the discounted returns."""
    scale: float
    """The standard deviation that advantages and risk weights are divided by."""
    explained_variance: float


def make_batch(theta, V, episodes, settings) -> Batch:
    """Returns, advantages and targets from the values as they are."""
    gamma, rows, R = settings.gamma, [], []
    for i, m in enumerate(episodes.mask.astype(bool)):
        s, a, r = episodes.observations[i][m], episodes.actions[i][m], episodes.rewards[i][m].copy()
        R.append((r * gamma ** np.arange(len(r))).sum())
        if not episodes.terminated[i] and settings.bootstrap_on_truncation:
            r[-1] += gamma * V[episodes.last_observations[i]]
        delta = r + gamma * np.append(V[s][1:], 0) - V[s]
        A = rewards_to_go(delta, gamma * settings.gae_lambda)
        rows.append((np.full(len(s), i), s, a, A, rewards_to_go(r, gamma), np.log(softmax(theta))[s, a]))
    steps = Steps(*map(np.concatenate, zip(*rows, strict=True)))
    explained = 1 - np.mean((steps.g - V[steps.s]) ** 2) / np.var(steps.g)
    mean, scale = (steps.A.mean(), steps.A.std()) if settings.normalise_advantages else (0.0, 1.0)
    return Batch(steps._replace(A=(steps.A - mean) / scale), np.array(R), scale, explained)


def trajectory_ratios(theta, steps, bound):
    """[n]: rho, clipped at zeta."""
    log_ratio = np.log(softmax(theta))[steps.s, steps.a] - steps.old_log_prob
    return np.minimum(np.exp(np.bincount(steps.trajectory, log_ratio)), bound)


def policy_gradient(theta, steps, weights, settings):
    """The gradient of the objective in a mean over `steps`, metrics, and [N] whether each step is clipped.

    `weights` [N] are the risk weights: inside the clipped objective with `risk_ratios="step"`, else beside it.
    """
    pi, eps, N = softmax(theta), settings.clip_range, len(steps.s)
    by_step = getattr(settings, "risk_ratios", "step") == "step"
    gradient, clipped = np.zeros_like(theta), np.zeros(N, bool)
    objective, entropies, kl, outside = [], [], [], []
    for t, (s, a, A, w) in enumerate(zip(steps.s, steps.a, steps.A, weights, strict=True)):
        log_ratio = np.log(pi[s, a]) - steps.old_log_prob[t]
        ratio, score = np.exp(log_ratio), np.eye(len(pi[s]))[a] - pi[s]
        A, beside = (A + w, 0.0) if by_step else (A, w)
        limit = np.clip(ratio, 1 - eps, 1 + eps)
        clipped[t] = ratio * A > limit * A
        gradient[s] += (~clipped[t] * ratio * A + beside) * score / N
        entropy = -(pi[s] * np.log(pi[s])).sum()
        gradient[s] -= settings.entropy_coefficient * pi[s] * (np.log(pi[s]) + entropy) / N
        objective.append(min(ratio * A, limit * A) + beside * np.log(pi[s, a]) + settings.entropy_coefficient * entropy)
        entropies.append(entropy)
        kl.append(ratio - 1 - log_ratio)
        outside.append(abs(ratio - 1) > eps)
    metrics = {
        "policy_loss": -np.mean(objective),
        "entropy": np.mean(entropies),
        "approx_kl": np.mean(kl),
        "clip_fraction": np.mean(outside),
        "gradient_norm": np.linalg.norm(gradient),
    }
    return gradient, metrics, clipped


def fit_values(V, s, g, settings) -> float:
    """One step of the values, in place; returns the mean squared error before it."""
    error, slope = V[s] - g, np.zeros_like(V)
    np.add.at(slope, s, 2 * settings.value_coefficient * error / len(g))
    V -= settings.value_learning_rate * shortened(slope, settings.max_gradient_norm)
    return np.mean(error**2)


def shortened(gradient, max_norm):
    """Scaled down to `max_norm` if it is longer."""
    return gradient * min(1, max_norm / np.linalg.norm(gradient))


def update(theta, V, episodes, settings, eta):
    """The inner loop of Algorithm 2, in place; returns the metrics, and what steps were met.

    `eta(R)` [n] are the weights of the measure, for ratios of 1. Steps met are pairs: whether a step was clipped, and
    whether the risk weight turned the sign of its advantage.
    """
    batch = make_batch(theta, V, episodes, settings)
    steps, n, every, met = batch.steps, len(batch.R), [], set()
    for _ in range(settings.inner_updates):
        by_step = settings.risk_ratios == "step"
        rho = np.ones(n) if by_step else trajectory_ratios(theta, steps, settings.ratio_bound)
        # lambda rho_i eta_i / T in a sum over n T steps is n times as much in their mean.
        weights = (settings.risk_aversion * n * rho * eta(batch.R) / batch.scale)[steps.trajectory]
        gradient, metrics, clipped = policy_gradient(theta, steps, weights, settings)
        met |= set(zip(clipped.tolist(), ((steps.A + weights) * steps.A < 0).tolist(), strict=True))
        trajectories = [steps.trajectory == i for i in range(n)]
        losses = [fit_values(V, steps.s[own], steps.g[own], settings) for own in trajectories]
        every.append({**metrics, "value_loss": np.mean(losses)})
        theta += settings.policy_learning_rate * shortened(gradient, settings.max_gradient_norm)
    means = {name: np.mean([one[name] for one in every]) for name in every[0]}
    of_batch = {"explained_variance": batch.explained_variance, "updates": settings.inner_updates}
    of_risk = {"risk_weight_mean": eta(batch.R).mean(), "risk_weight_std": eta(batch.R).std()}
    return {**means, **of_batch, **of_risk}, met
