"""Exact return distributions of tabular policies and exact gradients; the tests use them as ground truth.

    distribution = exact.return_distribution(mdp, policy, gamma)
    distribution.gini_deviation, distribution.measure("semivariance"), distribution.measure("cvar:0.2")
    exact.gradient("gini_deviation", mdp, logits, gamma)
    exact.gradient("cvar:0.2", mdp, logits, gamma)  # or exact.cvar(0.2), or any function of (values, probabilities)
    exact.frontier(mdp)  # what mean and risk policies can have at best

`measures` holds the functions of a distribution, `recursion` the dynamic program over (state, accumulated reward)
and `support` the values that the accumulated reward can take; `walks` enumerates what policies can do where
transitions are certain. Everything is computed in float64, without changing
JAX's global precision setting.
"""

from steadyrl.exact.distribution import ReturnDistribution, gradient, return_distribution
from steadyrl.exact.measures import (
    cvar,
    cvar_deviation,
    entropic_risk,
    gini_deviation,
    inter_es_range,
    inter_quantile_range,
    mean,
    mean_deviation,
    mean_median_deviation,
    semideviation,
    semivariance,
    standard_deviation,
    variance,
)
from steadyrl.exact.walks import Walk, frontier

__all__ = [
    "ReturnDistribution",
    "Walk",
    "cvar",
    "cvar_deviation",
    "entropic_risk",
    "frontier",
    "gini_deviation",
    "gradient",
    "inter_es_range",
    "inter_quantile_range",
    "mean",
    "mean_deviation",
    "mean_median_deviation",
    "return_distribution",
    "semideviation",
    "semivariance",
    "standard_deviation",
    "variance",
]
