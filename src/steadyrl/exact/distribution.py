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
from steadyrl.mdp import FiniteMDP

GRID = 4001
"""The number of grid points if none is given."""
OBJECTIVES: dict[str, measures.Measure] = {
    "mean": measures.mean,
    "variance": measures.variance,
    "gini_deviation": measures.gini_deviation,
}
"""The measures that `gradient` knows by name."""


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """The distribution of G0 = sum_t gamma^t r_t under one policy, or under each of a batch of policies.

    Where the process has too many possible returns, the accumulated reward was rounded to a grid. Each
    rounding moves it up or down with mean zero, whatever happened before and whatever comes: given the
    path of states and actions, the return on the grid is the true one plus the sum of those moves, a
    martingale. From this follows

    - `mean` is exact;
    - `variance` is exact: rounding added `rounding_variance` to that of the atoms, and it is subtracted;
    - `error` = min(E sum |move|, sqrt(E sum move^2)) bounds the Wasserstein-1 distance to the truth;
    - `gini_deviation` is too large by 0 to `error`, for it can only grow by noise of mean zero;
    - `cvar(alpha)` is too small by 0 to `error` / (2 alpha), for the same reason, and because the means agree.

    Measures are floats, or arrays with the leading axes of the policy.
    """

    values: NDArray[np.float64]
    """[m]: the returns that some policy can obtain, ascending."""
    probabilities: NDArray[np.float64]
    """[..., m]: their probabilities under the policy."""
    error: Any
    """A bound on the Wasserstein-1 distance to the true distribution; 0.0 if nothing was rounded."""
    rounding_variance: Any
    """What rounding added to the variance of the atoms."""

    @property
    def mean(self) -> Any:
        """E[G0]."""
        return self._measured(measures.mean)

    @property
    def variance(self) -> Any:
        """V[G0]."""
        # Not below 0: the difference of two equal numbers may be off by a last digit.
        return np.maximum(self._measured(measures.variance) - self.rounding_variance, 0.0)

    @property
    def standard_deviation(self) -> Any:
        """The square root of V[G0]."""
        return np.sqrt(self.variance)

    @property
    def gini_deviation(self) -> Any:
        """D[G0] = 1/2 E|X1 - X2|."""
        return self._measured(measures.gini_deviation)

    def cvar(self, alpha: float) -> Any:
        """The mean of the lower `alpha` tail of G0."""
        return self._measured(measures.cvar(alpha))

    def _measured(self, measure: measures.Measure) -> Any:
        return np.asarray(measure(self.values, self.probabilities))[()]


def return_distribution(mdp: FiniteMDP, policy: Any, gamma: float, grid: int | None = None) -> ReturnDistribution:
    """The distribution of G0 = sum_t gamma^t r_t of a stationary policy.

    It is exact if the accumulated rewards, less the most common one, take at most `grid` values: when gamma
    is 1 and the rewards have a common unit, when only one reward is paid before the end, or when episodes
    are short. Otherwise they are rounded to a grid; see `ReturnDistribution` for what that costs.

    Args:
        mdp: The process.
        policy: [..., S, A], the probability of each action in each state; one policy, or any batch of them.
        gamma: The discount factor, in (0, 1].
        grid: The number of accumulated rewards above which a grid of about that many is used; 4001 if None.
            Memory is about S * grid numbers, and horizon * grid for each different reward that ends an episode.

    Returns:
        The distribution, with the leading axes of `policy`.
    """
    policy = _checked_policy(mdp, policy)
    *batch, S, A = policy.shape
    with jax.enable_x64(True):
        p, atoms = _prepared(mdp, gamma, grid)
        # One policy after another: on a CPU that is as fast as a compiled batch, and compiles only once.
        runs = [_run(p, atoms, one) for one in policy.reshape(-1, S, A)]
    absolute = np.array([rounding.absolute for _, rounding in runs]).reshape(batch)[()]
    squared = np.array([rounding.squared for _, rounding in runs]).reshape(batch)[()]
    return ReturnDistribution(
        values=atoms.values,
        probabilities=np.array([p for p, _ in runs]).reshape(*batch, len(atoms.values)),
        error=np.minimum(absolute, np.sqrt(squared)),
        rounding_variance=squared,
    )


def gradient(
    objective: str | measures.Measure, mdp: FiniteMDP, logits: Any, gamma: float, grid: int | None = None
) -> NDArray[np.float64]:
    """The gradient of a measure of G0 with respect to the logits of a softmax policy.

    dM/dlogits = sum_x dM/dp(x) dp(x)/dlogits, where x runs over the possible returns and p is their
    distribution. It is exact where `return_distribution` is. On a grid it is exact for "mean" and "variance";
    a function sees the distribution on the grid, so its gradient is approached as `grid` grows (in the maze,
    gamma = 0.999: that of the Gini deviation to four digits by default).

    Args:
        objective: "mean", "variance", "gini_deviation", or a function (values [m], probabilities [m]) ->
            scalar, written in jax.numpy, such as `cvar(0.1)`.
        mdp: The process.
        logits: [S, A], the parameters; the policy is softmax(logits) over the actions.
        gamma: The discount factor, in (0, 1].
        grid: As in `return_distribution`.

    Returns:
        [S, A]: the derivative with respect to each logit.
    """
    measure = OBJECTIVES.get(objective) if isinstance(objective, str) else objective
    if not callable(measure):
        raise ValueError(
            f"objective={objective!r} is no measure known by name. Choose one of {', '.join(OBJECTIVES)}, "
            "or pass a function of (values, probabilities)."
        )
    logits = np.asarray(logits, dtype=np.float64)
    if logits.shape != (mdp.n_states, mdp.n_actions):
        raise ValueError(
            f"logits has shape {logits.shape}: a softmax policy has a number for each state and action. "
            f"Pass [{mdp.n_states}, {mdp.n_actions}]."
        )
    if not np.all(np.isfinite(logits)):
        raise ValueError(
            "logits holds NaN or infinity, where the softmax has no derivative. For an action that is all but "
            "never taken, use a large negative number such as -50."
        )
    with jax.enable_x64(True):
        p, atoms = _prepared(mdp, gamma, grid)
        probabilities, _ = _run(p, atoms, softmax(logits, axis=-1))
        per_atom = jax.grad(measure, argnums=1)(jnp.asarray(atoms.values), jnp.asarray(probabilities))
        # The variance that rounding added is a known function of the policy, and no part of the truth.
        per_rounding = -1.0 if measure is measures.variance else 0.0
        return np.asarray(recursion.pulled_back(p, logits, atoms.unmerge(per_atom), per_rounding))


class _Atoms(NamedTuple):
    """The m different values among the M of `recursion.values`, without those that no policy can obtain."""

    values: NDArray[np.float64]
    """[m]: ascending."""
    possible: NDArray[np.int64]
    """[k]: the positions among the M of the possible ones."""
    atom: NDArray[np.int64]
    """[k]: the position of each of them among the m."""
    M: int
    """The number of all."""

    def merge(self, every: Any) -> NDArray[np.float64]:
        """[m]: the probabilities of the different values, from those of all M."""
        probabilities = np.asarray(every, dtype=np.float64)[self.possible]
        return np.bincount(self.atom, probabilities, minlength=len(self.values)).astype(np.float64)

    def unmerge(self, derivatives: Any) -> NDArray[np.float64]:
        """[M]: derivatives with respect to the probabilities of all, from those of the different values."""
        every = np.zeros(self.M)
        every[self.possible] = np.asarray(derivatives)[self.atom]
        return every


def _run(
    p: recursion.Process, atoms: _Atoms, policy: NDArray[np.float64]
) -> tuple[NDArray[np.float64], recursion.Rounding]:
    """[m]: the probabilities of the different values under `policy` [S, A]; and the rounding."""
    every, rounding = recursion.probabilities(p, policy, False)
    return atoms.merge(every), rounding


@dataclass(frozen=True)
class _Key:
    """A process by its content: equal processes share their preparation, a changed one gets its own."""

    content: tuple[Any, ...]
    mdp: FiniteMDP = field(compare=False)


def _prepared(mdp: FiniteMDP, gamma: float, grid: int | None) -> tuple[recursion.Process, _Atoms]:
    """All that does not depend on the policy."""
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma={gamma}: a discount factor lies in (0, 1]. Choose 1 for undiscounted returns.")
    grid = GRID if grid is None else grid
    if grid < 2:
        raise ValueError(f"grid={grid}: values are rounded to two neighbours. Choose at least 2 points.")
    arrays = (mdp.next_state, mdp.reward, mdp.ends, mdp.probability, mdp.initial)
    content = (mdp.next_state.shape, mdp.horizon, *(array.tobytes() for array in arrays))
    return _prepare(_Key(content, mdp), float(gamma), int(grid))


@lru_cache(maxsize=16)
def _prepare(key: _Key, gamma: float, grid: int) -> tuple[recursion.Process, _Atoms]:
    p = recursion.process(key.mdp, gamma, grid)
    S, A = key.mdp.n_states, key.mdp.n_actions
    every, _ = recursion.probabilities(p, np.full((S, A), 1 / A), True)
    possible = np.flatnonzero(every)
    values = recursion.values(p)[possible]
    order = np.argsort(values)
    values = values[order]
    # Equal returns reached in different ways differ by the rounding of floating-point numbers.
    tolerance = 4 * key.mdp.horizon * np.finfo(np.float64).eps * np.max(np.abs(values))
    different = np.diff(values, prepend=-np.inf) > tolerance
    values = values[different]
    values.flags.writeable = False  # Shared by all distributions of this process.
    return p, _Atoms(values, possible[order], np.cumsum(different) - 1, len(every))


def _checked_policy(mdp: FiniteMDP, policy: Any) -> NDArray[np.float64]:
    """`policy` [..., S, A] in 64 bits, its rows summing to 1 exactly."""
    policy = np.asarray(policy, dtype=np.float64)
    if policy.shape[-2:] != (mdp.n_states, mdp.n_actions):
        raise ValueError(
            f"policy has shape {policy.shape}, but the process has {mdp.n_states} states and {mdp.n_actions} "
            f"actions. Pass [..., {mdp.n_states}, {mdp.n_actions}]."
        )
    sums = policy.sum(axis=-1)
    # 1e-5: rows computed in 32 bits are welcome, and made exact here.
    valid = np.all(policy >= 0, axis=-1) & (np.abs(sums - 1) <= 1e-5)
    if not np.all(valid):
        wrong = np.argwhere(~valid)[0]
        raise ValueError(
            f"policy{wrong.tolist()} is {policy[tuple(wrong)].tolist()}: probabilities are at least 0 and sum to 1 "
            "over the actions. Normalise each row, for instance by a softmax of its logits."
        )
    return np.asarray(policy / sums[..., None])
