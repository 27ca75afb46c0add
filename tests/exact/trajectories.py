"""Small processes, every trajectory of them, and measures by other formulas than those of `exact.measures`."""

import numpy as np

from steadyrl import exact
from steadyrl.exact.mdp import FiniteMDP

ALPHA = 0.3


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


MEASURES = {
    "mean": (mean, "mean"),
    "variance": (variance, "variance"),
    "gini_deviation": (gini_deviation, "gini_deviation"),
    "cvar": (cvar, exact.cvar(ALPHA)),
}


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
