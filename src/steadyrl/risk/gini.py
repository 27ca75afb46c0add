"""Gini deviation: D[X] = E|X1 - X2| / 2, half the expected distance between two independent returns (Eq. 6).

All sums run over the gaps between adjacent sorted returns. These have the size of the deviations, not of the returns,
so the result is accurate even for returns around 1e9.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.risk.measure import Law, Order, Properties, RiskMeasure, Sample
from steadyrl.risk.sample import as_mass, as_scaled_returns


def gini_deviation(returns: Any, unbiased: bool = True) -> Any:
    """D of a sample, over the last axis: sum_{i<j} |R_i - R_j| / (n (n - 1)), or / n^2 if not `unbiased`.

    The first is an unbiased estimate of D of the underlying distribution and equals `scipy.stats.lmoment(R, order=2)`;
    the second is D of the empirical distribution.

    Example: `gini_deviation([0, 1])` is 0.5, and 0.25 with `unbiased=False`.
    """
    xp, R, scale = as_scaled_returns(returns)
    n = R.shape[-1]
    k = xp.arange(1, n, dtype=R.dtype)
    # k returns lie below gap k and n - k above it, so k (n - k) pairs span it.
    pairs = (k * (n - k) * xp.diff(xp.sort(R, axis=-1), axis=-1)).sum(axis=-1)
    # float: JAX overflows on Python ints above 2^31, which n (n - 1) exceeds from 46,342 returns on.
    return scale.restore_value(pairs / float(n * (n - 1) if unbiased else n * n))


def gini_weights(returns: Any, where: Any = None, order: Order | None = None) -> Any:
    """Eta of Eq. 16, in the order of `returns`: -grad D is about sum_i rho_i eta_i score_i / (n - 1).

    For ascending returns eta_i = sum_{j>=i} (2j/n - 1)(R_{j+1} - R_j), which equals
    (max R - mean R) - (1/n) sum_j |R_i - R_j|. The largest return has weight 0, because no gap lies above it. Returns
    with `where` false are ignored and have weight 0; n counts the others. Pass a precomputed `order` to skip sorting.
    """
    xp, R, scale = as_scaled_returns(returns)
    mass = as_mass(xp, R, where)
    gaps, below, rank = _sorted_gaps(xp, R, mass, order)
    n = mass.sum(axis=-1, keepdims=True)
    rate = xp.where(below < n, 2 * below / _at_least_one(xp, n) - 1, 0)
    eta = _tail_sums(xp, rate * gaps)
    return scale.restore_weights(xp.take_along_axis(eta, rank, axis=-1) * (mass > 0))


def gini_weights_unbiased(returns: Any, where: Any = None, ratios: Any = None, order: Order | None = None) -> Any:
    """Leave-one-out weights: -grad D = E[sum_i rho_i weight_i score_i] / (n - 2), exactly, for n >= 3.

    With w_i = sum_j rho_j |R_i - R_j| / (n - 1) and g = mean of rho_i w_i,
    weight_i = -[(n - 2) w_i - (n g - 2 rho_i w_i)] / n, which is mean(w) - w_i if all rho are 1. The second term in
    the bracket is the estimate of 2D from all trajectories but i, that is, a baseline independent of trajectory i.
    `ratios` (rho) are importance ratios for samples from an older policy; they apply to both members of each pair. The
    estimate is unbiased as long as no ratio is clipped or masked out. For n = 2 the weights are 0, because no
    trajectories remain for a baseline.
    """
    xp, R, scale = as_scaled_returns(returns)
    selected = as_mass(xp, R, where)
    rho = as_mass(xp, R, where, ratios)
    gaps, below, rank = _sorted_gaps(xp, R, rho, order)
    above = rho.sum(axis=-1, keepdims=True) - below
    distances = _tail_sums(xp, above * gaps) + _head_sums(xp, below * gaps)
    n = selected.sum(axis=-1, keepdims=True)
    w = xp.take_along_axis(distances, rank, axis=-1) / _at_least_one(xp, n - 1)
    total = (rho * w).sum(axis=-1, keepdims=True)
    return scale.restore_weights(-((n - 2) * w - (total - 2 * rho * w)) / _at_least_one(xp, n) * selected)


def _sorted_gaps(xp: ModuleType, R: Any, mass: Any, order: Order | None) -> tuple[Any, Any, Any]:
    """The gaps between sorted returns, the mass below each gap, and the rank of each return in input order.

    A return with mass 0 only splits a gap in two, so the sort order does not depend on which returns are selected.
    """
    ascending, rank = order or Order.of(R)
    gaps = xp.diff(xp.take_along_axis(R, ascending, axis=-1), axis=-1)
    below = xp.cumsum(xp.take_along_axis(mass, ascending, axis=-1), axis=-1)[..., :-1]
    return gaps, below, rank


def _tail_sums(xp: ModuleType, terms: Any) -> Any:
    """From n - 1 terms, one per gap, the n sums over the gaps above each return."""
    tails = xp.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]
    return xp.concatenate([tails, xp.zeros_like(terms[..., :1])], axis=-1)


def _head_sums(xp: ModuleType, terms: Any) -> Any:
    """From n - 1 terms, one per gap, the n sums over the gaps below each return."""
    return xp.concatenate([xp.zeros_like(terms[..., :1]), xp.cumsum(terms, axis=-1)], axis=-1)


def _at_least_one(xp: ModuleType, count: Any) -> Any:
    return xp.maximum(count, 1)


def _unbiased(sample: Sample, state: Any) -> tuple[Any, Any]:
    w = gini_weights_unbiased(sample.returns, sample.where, sample.ratios, sample.order)
    return w / (sample.count - 2).clip(1), state


def _paper(sample: Sample, state: Any) -> tuple[Any, Any]:
    return gini_weights(sample.returns, sample.where, sample.order) / (sample.count - 1).clip(1), state


def gini_utility(returns: Any, law: Law) -> Any:
    """-E|g - X|, since grad D = E[|X1 - X2| score(X1)].

    By sorting: E|g - X| = g (2 F(g) - 1) + E[X] - 2 E[X; X < g]. A sum over all pairs would take ten times as long.
    """
    xp = jnp if isinstance(returns, jax.Array) else np
    order = law.returns.argsort()
    center = law.returns @ law.probabilities  # Large returns that differ little keep their precision.
    X, p, g = law.returns[order] - center, law.probabilities[order], returns - center
    below = xp.searchsorted(X, g)
    F, partial_mean = (xp.concatenate([xp.zeros_like(p[:1]), x.cumsum()]) for x in (p, p * X))
    return -(g * (2 * F[below] - 1) + partial_mean[-1] - 2 * partial_mean[below])


_PROPERTIES = Properties(location_invariant=True, degree=1, sub_additive=True, respects_convex_order=True)
GINI = RiskMeasure(
    value=gini_deviation, weights=_unbiased, utility=gini_utility, min_episodes=3, properties=_PROPERTIES
)
GINI_PAPER = RiskMeasure(value=gini_deviation, weights=_paper, utility=gini_utility, properties=_PROPERTIES)
