"""MG in the maze as one would write it in NumPy: a loop over steps, and Algorithm 1 word for word.

The yardstick of `benchmarks/maze.py`, and an independent second implementation for the tests.
"""

from __future__ import annotations

import numpy as np

from steadyrl.mdp import FiniteMDP


def play_episode(mdp: FiniteMDP, probabilities, rng) -> list[tuple[int, int, float]]:
    """One episode as (state, action, reward) for each step."""
    action_thresholds = probabilities.cumsum(axis=-1)
    outcome_thresholds = mdp.probability.cumsum(axis=-1)
    s = int(rng.choice(mdp.n_states, p=mdp.initial))
    steps = []
    for _ in range(mdp.horizon):
        a = int(np.searchsorted(action_thresholds[s], rng.random(), side="right"))
        k = int(np.searchsorted(outcome_thresholds[s, a], rng.random(), side="right"))
        steps.append((s, a, float(mdp.reward[s, a, k])))
        if mdp.ends[s, a, k]:
            break
        s = int(mdp.next_state[s, a, k])
    return steps


def softmax(theta):
    """pi(a|s) of a table."""
    e = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gini_eta(R):
    """The paper's eta, for returns in any order, from the pairwise sum."""
    return (R.max() - R.mean()) - np.abs(R[:, None] - R).mean(axis=1)


def leave_one_out(R):
    """The unbiased weights, from the pairwise sum."""
    w = np.abs(R[:, None] - R).sum(axis=1) / (len(R) - 1)
    return w.mean() - w


def update(theta, V, episodes, settings) -> int:
    """Algorithm 1's inner loop on one batch of episodes, in place; how many updates it made."""
    n, gamma = len(episodes), settings.gamma
    value_rate = settings.value_learning_rate or 100 * settings.policy_learning_rate
    states = [np.array([s for s, _, _ in steps]) for steps in episodes]
    actions = [np.array([a for _, a, _ in steps]) for steps in episodes]
    g = [_rewards_to_go([r for _, _, r in steps], gamma) for steps in episodes]
    R = np.array([g_i[0] for g_i in g])
    sampled = np.log(softmax(theta))
    for m in range(settings.inner_updates):
        pi = softmax(theta)
        log_ratio = np.log(pi) - sampled
        rho = np.exp([log_ratio[s, a].sum() for s, a in zip(states, actions, strict=True)])
        D = np.flatnonzero(np.abs(rho - 1) <= settings.ratio_range)
        if len(D) < settings.least_selected * n:
            return m
        mean_grad, gini_grad = np.zeros_like(theta), np.zeros_like(theta)
        for i in D:
            mean_grad += rho[i] * _score(pi, states[i], actions[i], g[i] - V[states[i]])
            error = np.zeros_like(V)
            np.add.at(error, states[i], V[states[i]] - g[i])
            V -= value_rate * 2 * error / len(states[i])
        paper = settings.estimator == "paper"
        eta = gini_eta(R[D]) if paper else leave_one_out(R[D])
        for i, eta_i in zip(D, eta, strict=True):
            gini_grad -= rho[i] * eta_i * _score(pi, states[i], actions[i], np.ones(len(states[i])))
        divisor = len(D) - 1 if paper else len(D) - 2
        theta += settings.policy_learning_rate * (mean_grad / len(D) - settings.risk_aversion * gini_grad / divisor)
    return settings.inner_updates


def _score(pi, s, a, u):
    """sum_t u_t grad log pi(a_t|s_t) of a softmax table."""
    score = np.zeros_like(pi)
    np.add.at(score, (s, a), u)
    np.add.at(score, s, -u[:, None] * pi[s])
    return score


def _rewards_to_go(rewards, gamma):
    g = np.zeros(len(rewards))
    following = 0.0
    for t in reversed(range(len(rewards))):
        following = g[t] = rewards[t] + gamma * following
    return g
