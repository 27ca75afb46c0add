"""The return distribution of a tabular policy, and the gradients of its measures."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from steadyrl.exact import measures, recursion
from steadyrl.exact.mdp import FiniteMDP

GRID = 4001
"""Default number of grid points."""


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """The distribution of G0 = sum_t gamma^t r_t under one policy, or under each of a batch of policies.

    If the MDP has too many possible returns, the accumulated reward is rounded to a grid. Each rounding adds noise
    whose mean is zero given the whole trajectory and all earlier roundings, so the return on the grid is the true
    return plus a martingale. Therefore

    - `mean` is exact;
    - `variance` is exact: rounding adds `rounding_variance` to the variance of the atoms, and it is subtracted again;
    - `error` = min(E sum |noise|, sqrt(E sum noise^2)) bounds the Wasserstein-1 distance to the true distribution;
    - `gini_deviation` is too large by at most `error`, and never too small: zero-mean noise cannot reduce it;
    - `cvar(alpha)` is too small by at most `error` / (2 alpha), and never too large, for the same reason, and with
      a factor of 1/2 because the means agree;
    - `measure(...)` of any other measure is that of the grid, except for "mean", "variance" and "standard_deviation".

    Measures are floats, or arrays with the leading axes of the policy.
    """

    values: NDArray[np.float64]
    """[m]: the returns that some policy can obtain, in ascending order."""
    probabilities: NDArray[np.float64]
    """[..., m]: their probabilities under the policy."""
    error: Any
    """A bound on the Wasserstein-1 distance to the true distribution; 0.0 if nothing was rounded."""
    rounding_variance: Any
    """The variance that rounding added to the atoms."""

    @property
    def mean(self) -> Any:
        """E[G0]."""
        return self._measure(measures.mean)

    @property
    def variance(self) -> Any:
        """V[G0]."""
        # Clipped at 0: the difference of two equal numbers may be a rounding error below it.
        return np.maximum(self._measure(measures.variance) - self.rounding_variance, 0.0)

    @property
    def standard_deviation(self) -> Any:
        """The square root of V[G0]."""
        return np.sqrt(self.variance)

    @property
    def gini_deviation(self) -> Any:
        """D[G0] = 1/2 E|X1 - X2|."""
        return self._measure(measures.gini_deviation)

    def cvar(self, alpha: float) -> Any:
        """The mean of the lower `alpha` tail of G0."""
        return self._measure(measures.cvar(alpha))

    def measure(self, objective: str | measures.Measure) -> Any:
        """Any measure: by its name, such as "semivariance" or "cvar:0.2", or a function (values, probabilities)."""
        measure = _measure_of(objective)
        if measure in (measures.variance, measures.standard_deviation):  # Without what rounding added.
            return self.variance if measure is measures.variance else self.standard_deviation
        return self._measure(measure)

    def _measure(self, measure: measures.Measure) -> Any:
        return np.asarray(measure(self.values, self.probabilities))[()]


def return_distribution(mdp: FiniteMDP, policy: Any, gamma: float, grid: int | None = None) -> ReturnDistribution:
    """The distribution of G0 = sum_t gamma^t r_t of a stationary policy.

    It is exact if the accumulated reward, measured relative to the most common reward, takes at most `grid` values.
    That holds if gamma is 1 and the rewards are multiples of a common unit, if all rewards before the last step are
    equal, or if episodes are short. Otherwise the accumulated reward is rounded to a grid; `ReturnDistribution` lists
    the error bounds.

    Args:
        mdp: The finite MDP.
        policy: [..., S, A], the probability of each action in each state; one policy, or any batch of them.
        gamma: The discount factor, in (0, 1].
        grid: Maximum number of values of the accumulated reward; if there are more, a grid of about this size
            replaces them. 4001 if None. Memory is about S * grid numbers, plus horizon * grid for each distinct
            reward that ends an episode.

    Returns:
        The distribution, with the leading axes of `policy`.
    """
    policy = _validate_policy(mdp, policy)
    *batch, S, A = policy.shape
    with jax.enable_x64(True):
        p, atoms = _prepare(mdp, gamma, grid)
        # A Python loop: on a CPU it is as fast as a vmap, and one compiled program serves every batch size.
        results = [_evaluate(p, atoms, one) for one in policy.reshape(-1, S, A)]
    absolute = np.array([rounding.absolute for _, rounding in results]).reshape(batch)[()]
    squared = np.array([rounding.squared for _, rounding in results]).reshape(batch)[()]
    return ReturnDistribution(
        values=atoms.values,
        probabilities=np.array([p for p, _ in results]).reshape(*batch, len(atoms.values)),
        error=np.minimum(absolute, np.sqrt(squared)),
        rounding_variance=squared,
    )


def gradient(
    objective: str | measures.Measure, mdp: FiniteMDP, logits: Any, gamma: float, grid: int | None = None
) -> NDArray[np.float64]:
    """The gradient of a measure of G0 with respect to the logits of a softmax policy.

    dM/dlogits = sum_x dM/dp(x) dp(x)/dlogits, where x runs over the possible returns and p is their distribution.
    It is exact wherever `return_distribution` is. On a grid, "mean", "variance" and "standard_deviation" remain exact;
    any other measure is differentiated on the grid, and its gradient converges as `grid` grows (for the Gini deviation
    in the maze with gamma = 0.999, the default grid gives four correct digits).

    Args:
        objective: A name, such as "mean", "gini_deviation", "semivariance" or "cvar:0.2"; or a function (values [m],
            probabilities [m]) -> scalar, written in jax.numpy, such as `cvar(0.1)`.
        mdp: The finite MDP.
        logits: [S, A], the policy parameters; the policy is softmax(logits) over the actions.
        gamma: The discount factor, in (0, 1].
        grid: As in `return_distribution`.

    Returns:
        [S, A]: the derivative with respect to each logit.
    """
    measure = _measure_of(objective)
    logits = np.asarray(logits, dtype=np.float64)
    if logits.shape != (mdp.n_states, mdp.n_actions):
        raise ValueError(
            f"logits has shape {logits.shape}: a softmax policy has one logit per state and action. "
            f"Pass [{mdp.n_states}, {mdp.n_actions}]."
        )
    if not np.all(np.isfinite(logits)):
        raise ValueError(
            "logits holds NaN or infinity, where the softmax has no derivative. For an action with almost zero "
            "probability, use a large negative number such as -50."
        )
    with jax.enable_x64(True):
        p, atoms = _prepare(mdp, gamma, grid)
        probabilities, rounding = _evaluate(p, atoms, softmax(logits, axis=-1))
        differentiated, factor, per_rounding = measure, 1.0, 0.0
        if measure in (measures.variance, measures.standard_deviation):
            # Rounding added `Rounding.squared` to the variance: subtract its gradient.
            differentiated, per_rounding = measures.variance, -1.0
        if measure is measures.standard_deviation:
            variance = float(measures.variance(atoms.values, probabilities) - rounding.squared)
            factor = 0.5 / np.sqrt(variance) if variance > 0 else 0.0
        per_atom = jax.grad(differentiated, argnums=1)(jnp.asarray(atoms.values), jnp.asarray(probabilities))
        gradient = recursion.weighted_gradient(p, logits, atoms.unmerge(per_atom), per_rounding)
        return factor * np.asarray(gradient)


def _measure_of(objective: str | measures.Measure) -> measures.Measure:
    if isinstance(objective, str):
        return measures.by_name(objective)
    if not callable(objective):
        raise ValueError(
            f"objective={objective!r} is not a known measure. Choose one of "
            f"{', '.join([*measures.BY_NAME, *measures.WITH_NUMBER])}, or pass a function of (values, probabilities)."
        )
    return objective


class _Atoms(NamedTuple):
    """The m distinct values among the M of `recursion.values`, without those that no policy can obtain."""

    values: NDArray[np.float64]
    """[m]: in ascending order."""
    possible: NDArray[np.int64]
    """[k]: the indices, among the M values, of those that some policy can obtain."""
    atom: NDArray[np.int64]
    """[k]: the index of each of these among the m distinct values."""
    M: int

    def merge(self, all_probabilities: Any) -> NDArray[np.float64]:
        """[m]: the probabilities of the distinct values, from those of all M."""
        probabilities = np.asarray(all_probabilities, dtype=np.float64)[self.possible]
        return np.bincount(self.atom, probabilities, minlength=len(self.values)).astype(np.float64)

    def unmerge(self, derivatives: Any) -> NDArray[np.float64]:
        """[M]: derivatives with respect to all M probabilities, from those for the m distinct values."""
        unmerged = np.zeros(self.M)
        unmerged[self.possible] = np.asarray(derivatives)[self.atom]
        return unmerged


def _evaluate(
    p: recursion.Process, atoms: _Atoms, policy: NDArray[np.float64]
) -> tuple[NDArray[np.float64], recursion.Rounding]:
    """The probabilities [m] of the distinct values under `policy` [S, A], and the rounding noise."""
    all_probabilities, rounding = recursion.probabilities(p, policy, False)
    return atoms.merge(all_probabilities), rounding


@dataclass(frozen=True)
class _Key:
    """Cache key that compares an MDP by its content, so that one whose arrays were changed in place is recomputed."""

    content: tuple[Any, ...]
    mdp: FiniteMDP = field(compare=False)


def _prepare(mdp: FiniteMDP, gamma: float, grid: int | None) -> tuple[recursion.Process, _Atoms]:
    """Validate the arguments and return everything that does not depend on the policy, cached."""
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma={gamma}: a discount factor lies in (0, 1]. Use 1 for undiscounted returns.")
    grid = GRID if grid is None else grid
    if grid < 2:
        raise ValueError(f"grid={grid}: values are rounded to their two neighbours. Use at least 2 points.")
    arrays = (mdp.next_state, mdp.reward, mdp.ends, mdp.probability, mdp.initial)
    content = (mdp.next_state.shape, mdp.horizon, *(array.tobytes() for array in arrays))
    return _prepare_cached(_Key(content, mdp), float(gamma), int(grid))


@lru_cache(maxsize=16)
def _prepare_cached(key: _Key, gamma: float, grid: int) -> tuple[recursion.Process, _Atoms]:
    p = recursion.process(key.mdp, gamma, grid)
    S, A = key.mdp.n_states, key.mdp.n_actions
    indicator, _ = recursion.probabilities(p, np.full((S, A), 1 / A), True)
    possible = np.flatnonzero(indicator)
    values = recursion.values(p)[possible]
    order = np.argsort(values)
    values = values[order]
    # The same return, summed in different orders, differs by floating-point error.
    tolerance = 4 * key.mdp.horizon * np.finfo(np.float64).eps * np.max(np.abs(values))
    distinct = np.diff(values, prepend=-np.inf) > tolerance
    values = values[distinct]
    values.flags.writeable = False  # Shared by all distributions of this MDP.
    return p, _Atoms(values, possible[order], np.cumsum(distinct) - 1, len(indicator))


def _validate_policy(mdp: FiniteMDP, policy: Any) -> NDArray[np.float64]:
    """`policy` [..., S, A] in float64, with rows normalized to sum to exactly 1."""
    policy = np.asarray(policy, dtype=np.float64)
    if policy.shape[-2:] != (mdp.n_states, mdp.n_actions):
        raise ValueError(
            f"policy has shape {policy.shape}, but the process has {mdp.n_states} states and {mdp.n_actions} "
            f"actions. Pass [..., {mdp.n_states}, {mdp.n_actions}]."
        )
    sums = policy.sum(axis=-1)
    # 1e-5 accepts rows computed in float32.
    valid = np.all(policy >= 0, axis=-1) & (np.abs(sums - 1) <= 1e-5)
    if not np.all(valid):
        wrong = np.argwhere(~valid)[0]
        raise ValueError(
            f"policy{wrong.tolist()} is {policy[tuple(wrong)].tolist()}: probabilities are at least 0 and sum to 1 "
            "over the actions. Normalize each row, for example with a softmax of its logits."
        )
    return np.asarray(policy / sums[..., None])
