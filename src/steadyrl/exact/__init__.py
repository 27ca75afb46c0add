"""Exact return distributions of tabular policies and exact gradients; the tests use them as ground truth.

    distribution = exact.return_distribution(mdp, policy, gamma)
    distribution.gini_deviation, distribution.cvar(0.1), distribution.error
    exact.gradient("gini_deviation", mdp, logits, gamma)
    exact.gradient(exact.cvar(0.1), mdp, logits, gamma)
    exact.frontier(mdp)                                     # what mean and risk policies can have at best

`measures` holds the functions of a distribution, `recursion` the dynamic program over (state, accumulated reward)
and `support` the values that the accumulated reward can take; `walks` enumerates what policies can do where
transitions are certain. Everything is computed in float64, without changing
JAX's global precision setting.
"""

from steadyrl.exact.distribution import ReturnDistribution, gradient, return_distribution
from steadyrl.exact.measures import cvar, gini_deviation, mean, variance
from steadyrl.exact.walks import Walk, frontier

__all__ = [
    "ReturnDistribution",
    "Walk",
    "cvar",
    "frontier",
    "gini_deviation",
    "gradient",
    "mean",
    "return_distribution",
    "variance",
]
