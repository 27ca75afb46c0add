"""Small processes, every trajectory of them, and measures by other formulas than those of `exact.measures`."""

import numpy as np

from steadyrl.exact.mdp import FiniteMDP

ALPHA, BETA = 0.3, 0.8


def every_trajectory(mdp, policy, gamma):
    """The returns and the probabilities of all trajectories."""
    found = []

    def walk(s, t, G, probability):
        for a in range(mdp.n_actions):
            for k in range(mdp.next_state.shape[2]):
                p = probability * policy[s, a] * mdp.probability[s, a, k]
                G_next = G + gamma**t * mdp.reward[s, a, k]
                if mdp.ends[s, a, k] or t + 1 == mdp.horizon:
                    found.append((G_next, p))
                else:
                    walk(mdp.next_state[s, a, k], t + 1, G_next, p)

    for s, p in enumerate(mdp.initial):
        walk(s, 0, 0.0, p)
    return np.array(found).T


def mean(x, p):
    return np.sum(x * p)


def variance(x, p):
    return np.sum(x**2 * p) - mean(x, p) ** 2


def gini_deviation(x, p):
    return 0.5 * np.sum(np.abs(x[:, None] - x) * p[:, None] * p)


def cvar(x, p):
    """Rockafellar and Uryasev: max_q q - E[(q - X)+] / alpha, attained at an atom."""
    return np.max(x - np.maximum(x[:, None] - x, 0) @ p / ALPHA)


def semivariance(x, p):
    return np.sum(np.minimum(x - mean(x, p), 0) ** 2 * p)


def mean_median_deviation(x, p):
    """The least mean distance, attained at an atom."""
    return np.min(np.abs(x[:, None] - x) @ p)


def inter_quantile_range(x, p):
    """The mean of quantiles on a fine grid of levels around ALPHA, at the upper and the lower end."""
    levels = ALPHA * (0.5 + (np.arange(1_000_000) + 0.5) / 1_000_000)
    lower, upper = (sign * quantiles(sign * x, p, levels).mean() for sign in (1, -1))
    return upper - lower


def quantiles(x, p, levels):
    order = np.argsort(x)
    return x[order][np.searchsorted(np.cumsum(p[order])[:-1], levels)]


VALUES = {
    "mean": mean,
    "variance": variance,
    "standard_deviation": lambda x, p: np.sqrt(variance(x, p)),
    "semivariance": semivariance,
    "semideviation": lambda x, p: np.sqrt(semivariance(x, p)),
    "gini_deviation": gini_deviation,
    "mean_deviation": lambda x, p: np.sum(np.abs(x - mean(x, p)) * p),
    "mean_median_deviation": mean_median_deviation,
    f"cvar:{ALPHA}": cvar,
    f"cvar_deviation:{ALPHA}": lambda x, p: mean(x, p) - cvar(x, p),
    f"inter_es_range:{ALPHA}": lambda x, p: -cvar(-x, p) - cvar(x, p),
    f"entropic_risk:{BETA}": lambda x, p: np.log(np.sum(p * np.exp(-BETA * x))) / BETA,
}
"""By the names that `exact` has for them. The differences of `inter_quantile_range` would be too coarse."""


def random_mdp(seed, integer=False):
    """3 states, 2 actions, 2 outcomes. Where these lead is always the same, so that few programs are compiled."""
    rng = np.random.default_rng(seed)
    shape = (3, 2, 2)
    return FiniteMDP(
        next_state=[[[1, 2], [0, 1]], [[2, 2], [1, 0]], [[0, 1], [2, 0]]],
        reward=rng.integers(-2, 3, size=shape) if integer else rng.normal(size=shape),
        ends=[[[False, True], [False, False]], [[True, False], [False, False]], [[False, False], [False, True]]],
        probability=rng.dirichlet(np.ones(2), size=shape[:2]),
        initial=rng.dirichlet(np.ones(3)),
        horizon=4,
    )


def random_logits(seed):
    return np.random.default_rng(seed + 1000).normal(size=(3, 2))


def one_step(rewards, probabilities):
    """One state, one action, one step."""
    shape = (1, 1, len(rewards))
    return FiniteMDP(
        next_state=np.zeros(shape),
        reward=np.reshape(rewards, shape),
        ends=np.ones(shape),
        probability=np.reshape(probabilities, shape),
        initial=np.ones(1),
        horizon=1,
    )
