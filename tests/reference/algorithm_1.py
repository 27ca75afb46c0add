"""Algorithm 1 of the paper in plain NumPy: MG for a table, one trajectory and one step at a time.

The reference that tests compare `steadyrl.agents.vpg.VPGUpdate` with, and that `benchmarks/speed/maze.py` measures the
compiled program against. It shares no code with either: read `update` beside the paper. Where the paper leaves a
choice open, it makes the same one as `VPGUpdate` (docs/deviations.md).
"""

from __future__ import annotations

import numpy as np

from steadyrl.exact.mdp import FiniteMDP


def play_episode(mdp: FiniteMDP, probabilities, rng) -> list[tuple[int, int, float]]:
    """One episode of the policy `probabilities` [S, A], as (state, action, reward) for each step."""
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


def steps_of(episodes) -> list[list[tuple[int, int, float]]]:
    """Padded `steadyrl.rollouts.episodes.Episodes` in the form of `play_episode`."""
    each = zip(episodes.observations, episodes.actions, episodes.rewards, episodes.mask, strict=True)
    return [[(int(s), int(a), float(r)) for s, a, r, m in zip(*one, strict=True) if m] for one in each]


def softmax(theta):
    """pi(a|s) = exp(theta[s, a]) / sum_b exp(theta[s, b])."""
    e = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gini_eta(R):
    """eta_i = (max R - mean R) - (1/n) sum_j |R_i - R_j|: the paper's weights (Eq. 16), for returns in any order."""
    return (R.max() - R.mean()) - np.abs(R[:, None] - R).mean(axis=1)


def leave_one_out(R):
    """weight_i = mean(w) - w_i, with w_i = sum_j |R_i - R_j| / (n - 1): the unbiased weights, for ratios of 1."""
    w = np.abs(R[:, None] - R).sum(axis=1) / (len(R) - 1)
    return w.mean() - w


def update(theta, V, episodes, settings) -> int:
    """The inner loop of Algorithm 1 on one batch of `episodes`; returns the number of updates made.

    `theta` [S, A] and `V` [S] are changed in place. `settings` are those of MeanGini, resolved for a table. With
    `estimator="unbiased"` it equals `VPGUpdate` for the first update alone, while all ratios are 1.
    """
    n, gamma, paper = len(episodes), settings.gamma, settings.estimator == "paper"
    states = [np.array([s for s, _, _ in steps]) for steps in episodes]
    actions = [np.array([a for _, a, _ in steps]) for steps in episodes]
    g = [rewards_to_go([r for _, _, r in steps], gamma) for steps in episodes]
    R = np.array([g_i[0] for g_i in g])
    old_log_pi = np.log(softmax(theta))
    for m in range(settings.inner_updates):
        pi = softmax(theta)
        log_ratio = np.log(pi) - old_log_pi
        rho = np.exp([log_ratio[s, a].sum() for s, a in zip(states, actions, strict=True)])
        D = np.flatnonzero(np.abs(rho - 1) <= settings.ratio_range)
        if len(D) < settings.least_selected * n:
            return m
        mean_grad, gini_grad = np.zeros_like(theta), np.zeros_like(theta)
        for i in D:
            mean_grad += rho[i] * score(pi, states[i], actions[i], g[i] - V[states[i]])
            slope = np.zeros_like(V)
            np.add.at(slope, states[i], 2 * (V[states[i]] - g[i]) / len(g[i]))
            V -= settings.value_learning_rate * slope
        eta = gini_eta(R[D]) if paper else leave_one_out(R[D])
        for i, eta_i in zip(D, eta, strict=True):
            gini_grad -= rho[i] * eta_i * score(pi, states[i], actions[i], np.ones(len(g[i])))
        divisor = len(D) - 1 if paper else len(D) - 2
        theta += settings.policy_learning_rate * (mean_grad / len(D) - settings.risk_aversion * gini_grad / divisor)
    return settings.inner_updates


def score(pi, s, a, u):
    """sum_t u_t grad log pi(a_t|s_t) of a softmax table: u_t (onehot(a_t) - pi(s_t)) in row s_t."""
    total = np.zeros_like(pi)
    np.add.at(total, (s, a), u)
    np.add.at(total, s, -u[:, None] * pi[s])
    return total


def rewards_to_go(rewards, gamma):
    """g_t = r_t + gamma g_{t+1}."""
    g, g_next = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        g_next = g[t] = rewards[t] + gamma * g_next
    return g
