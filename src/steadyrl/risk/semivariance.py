"""Semivariance and semideviation: variance and standard deviation that count the returns below the mean alone."""

from __future__ import annotations

from typing import Any

from steadyrl.risk.measure import Law, Properties, from_utility
from steadyrl.risk.sample import as_scaled_returns, deviations


def semivariance(returns: Any) -> Any:
    """The sum of ((mean R - R_i)+)^2 over n - 1, over the last axis.

    Together with that of -R it is the variance, which is divided by n - 1 as well.

    Example: `semivariance([0, 1, 5])` is (4 + 1) / 2.
    """
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(_below_mean(xp, R), degree=2)


def semideviation(returns: Any) -> Any:
    """The square root of `semivariance`."""
    xp, R, scale = as_scaled_returns(returns)
    return scale.restore_value(xp.sqrt(_below_mean(xp, R)))


def _below_mean(xp: Any, R: Any) -> Any:
    return (deviations(xp, R).clip(max=0) ** 2).sum(axis=-1) / (R.shape[-1] - 1)


def semivariance_utility(returns: Any, law: Law) -> Any:
    """-((m - g)+)^2 - 2 E[(m - X)+] (g - m) with m = E[X]: a higher g also raises m, and so what lies below it."""
    g, X = law.centered(returns)
    return -(g.clip(max=0) ** 2) + 2 * (X.probabilities @ X.returns.clip(max=0)) * g


def semideviation_utility(returns: Any, law: Law) -> Any:
    """That of the semivariance, divided by twice the semideviation; 0 for a law without dispersion (deviation 60)."""
    _, X = law.centered(returns)
    spread = (X.probabilities @ X.returns.clip(max=0) ** 2) ** 0.5
    dispersed = spread > law.noise
    return semivariance_utility(returns, law) * dispersed / (2 * spread + ~dispersed)


SEMIVARIANCE = from_utility(
    semivariance,
    semivariance_utility,
    Properties(location_invariant=True, degree=2, sub_additive=False, respects_convex_order=True),
)
SEMIDEVIATION = from_utility(
    semideviation,
    semideviation_utility,
    Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True),
)
