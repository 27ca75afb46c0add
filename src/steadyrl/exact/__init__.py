"""The exact distribution of the return of a tabular policy, and exact gradients: the ground truth of the tests.

    distribution = exact.return_distribution(mdp, policy, gamma)
    distribution.gini_deviation, distribution.cvar(0.1), distribution.error
    exact.gradient("gini_deviation", mdp, logits, gamma)
    exact.gradient(exact.cvar(0.1), mdp, logits, gamma)

`measures` holds the functions of a distribution, `recursion` the dynamic programme over (state, accumulated
reward), `support` the values that the accumulated reward may take. 64-bit numbers are used inside and
stay inside.
"""

from steadyrl.exact.distribution import ReturnDistribution, gradient, return_distribution
from steadyrl.exact.measures import cvar, gini_deviation, mean, variance

__all__ = [
    "ReturnDistribution",
    "cvar",
    "gini_deviation",
    "gradient",
    "mean",
    "return_distribution",
    "variance",
]
