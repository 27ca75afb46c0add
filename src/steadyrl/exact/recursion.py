"""The dynamic program over (state, accumulated reward), forward in time.

Most rewards equal one constant r0 (in the maze: -1). So only the excess is accumulated, Y_t = sum_{k<t} gamma^k
(r_k - r0), on a fixed support, and r0 sum_{k<=t} gamma^k is added when an episode ends at step t. Let mass_t[s, y] be
the probability that step t starts in state s with Y_t = y. Then

    mass_{t+1}[s', y'] = sum over s, y and non-terminal outcomes (s, e, s') of
                         mass_t[s, y] * flow[s, (e, s')] * spread(y' | y + gamma^t e),

where flow is linear in the policy, and spread splits a value between its two neighbours in the support such that the
mean is preserved. The reward that ends an episode is never rounded.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steadyrl.exact.mdp import FiniteMDP
from steadyrl.exact.support import Floats, reward_support

Ints = NDArray[np.int64]
Pair = tuple[jax.Array, jax.Array]


class Process(NamedTuple):
    """An MDP in the form of the recursion: n outcomes of positive probability, N support points, T = horizon - 1.

    A step moves probability into one of C = S + P + Q columns: state s' without excess (S columns), a pair
    (excess, s') (P columns), or the end of the episode with one of Q excesses. In the last step every outcome ends
    the episode.
    """

    state: Ints
    """[n]: the state of an outcome."""
    action: Ints
    """[n]: the action of an outcome."""
    probability: Floats
    """[n]: the probability of an outcome, given state and action."""
    column: Ints
    """[n]: the column of an outcome, before the last step."""
    last_column: Ints
    """[n]: the index of its excess in `last_excess`, in the last step."""
    excess: Floats
    """[E]: the distinct nonzero excesses of outcomes that do not end the episode."""
    pair_excess: Ints
    """[P]: the index in `excess` of each pair (excess, s')."""
    pair_state: Ints
    """[P]: the state s' of each pair."""
    end_excess: Floats
    """[Q]: the distinct excesses of outcomes that end the episode."""
    last_excess: Floats
    """[L]: the distinct excesses of all outcomes."""
    initial: Floats
    """[S]: the initial state distribution."""
    discount: Floats
    """[T + 1]: gamma^t."""
    base: Floats
    """[T + 1]: r0 sum_{k<=t} gamma^k."""
    support: Floats
    """[N]: the values of Y, in ascending order."""
    tolerance: float
    """Values closer than this differ by floating-point error only."""


class Rounding(NamedTuple):
    """The zero-mean noise delta that rounding Y to the support adds, summed over all steps."""

    absolute: jax.Array
    """E sum |delta|."""
    squared: jax.Array
    """E sum delta^2."""


def process(mdp: FiniteMDP, gamma: float, points: int) -> Process:
    """Convert `mdp` to the form of the recursion, with a support of at most about `points` values."""
    state, action, k = np.nonzero(mdp.probability > 0)
    reward, ends = mdp.reward[state, action, k], mdp.ends[state, action, k]
    next_state = mdp.next_state[state, action, k]
    rewards, counts = np.unique(reward[~ends] if not np.all(ends) else reward, return_counts=True)
    r0 = rewards[np.argmax(counts)]
    excess = reward - r0
    discount = gamma ** np.arange(mdp.horizon, dtype=np.float64)
    shifted = ~ends & (excess != 0)

    shifts, reachable = [], mdp.initial > 0
    for t in range(mdp.horizon - 1):
        shifts.append(discount[t] * np.unique(excess[shifted & reachable[state]]))
        reachable = np.isin(np.arange(mdp.n_states), next_state[~ends & reachable[state]])
    # 4 H eps: the error of a sum of H terms is at most H eps / 2 times its largest possible size.
    size = sum(np.max(np.abs(shift), initial=0) for shift in shifts)
    tolerance = 4 * mdp.horizon * np.finfo(np.float64).eps * size

    distinct, which = np.unique(excess[shifted], return_inverse=True)
    pairs, pair_column = np.unique(which * mdp.n_states + next_state[shifted], return_inverse=True)
    end_excess, end_column = np.unique(excess[ends], return_inverse=True)
    last_excess, last_column = np.unique(excess, return_inverse=True)
    column = next_state.astype(np.int64)
    column[shifted] = mdp.n_states + pair_column
    column[ends] = mdp.n_states + len(pairs) + end_column

    return Process(
        state=state,
        action=action,
        probability=mdp.probability[state, action, k],
        column=column,
        last_column=last_column,
        excess=distinct,
        pair_excess=pairs // mdp.n_states,
        pair_state=pairs % mdp.n_states,
        end_excess=end_excess,
        last_excess=last_excess,
        initial=mdp.initial.copy(),
        discount=discount,
        base=r0 * np.cumsum(discount),
        support=reward_support(shifts, points, tolerance),
        tolerance=tolerance,
    )


def values(p: Process) -> Floats:
    """[M], M = T Q N + L N: the return of an episode that ends at step t with excess e after Y_t = y."""
    before_horizon = p.base[:-1, None, None] + p.discount[:-1, None, None] * p.end_excess[:, None] + p.support
    at_horizon = p.base[-1] + p.discount[-1] * p.last_excess[:, None] + p.support
    return np.concatenate([before_horizon.ravel(), at_horizon.ravel()])


@jax.jit
def probabilities(p: Process, policy: jax.Array, only_possible: bool) -> tuple[jax.Array, Rounding]:
    """The probability [M] of each of `values` under `policy` [S, A], and the rounding noise.

    With `only_possible`, the result is positive where the probability is, but not equal to it: positive masses are
    reset to 1 after each step, so that products of many small probabilities do not underflow.
    """
    flow, last_flow = _flows(p, policy)

    def step(mass: jax.Array, discount: jax.Array) -> tuple[jax.Array, tuple[jax.Array, Rounding]]:
        mass, ended, rounding = _step(p, flow, mass, discount)
        return jnp.where(only_possible, jnp.sign(mass), mass), (ended, rounding)

    mass, (ended, rounding) = jax.lax.scan(step, _start(p), jnp.asarray(p.discount[:-1]))
    total = Rounding(rounding.absolute.sum(), rounding.squared.sum())
    return jnp.concatenate([ended.ravel(), (last_flow.T @ mass).ravel()]), total


@jax.jit
def weighted_gradient(p: Process, logits: jax.Array, weights: jax.Array, squared_weight: float) -> jax.Array:
    """[S, A]: the gradient of sum_x weights(x) P(x) + squared_weight * Rounding.squared with respect to the logits."""

    def weighted_sum(logits: jax.Array) -> jax.Array:
        p_values, rounding = probabilities(p, jax.nn.softmax(logits), False)
        total: jax.Array = p_values @ weights + squared_weight * rounding.squared
        return total

    gradient: jax.Array = jax.grad(weighted_sum)(logits)
    return gradient


def _flows(p: Process, policy: jax.Array) -> Pair:
    """[S, C] and [S, L]: the probability of each column, before the last step and in the last step."""
    S = len(p.initial)
    C = S + len(p.pair_state) + len(p.end_excess)
    weight = policy[p.state, p.action] * p.probability
    state, column = jnp.tile(p.state, 2), jnp.concatenate([p.column, C + p.last_column])
    flows = jnp.zeros((S, C + len(p.last_excess))).at[state, column].add(jnp.tile(weight, 2))
    return flows[:, :C], flows[:, C:]


def _start(p: Process) -> jax.Array:
    """mass_0 [S, N]: the initial states with Y_0 = 0."""
    zero = jnp.argmin(jnp.abs(p.support))
    return jnp.outer(p.initial, jnp.arange(len(p.support)) == zero)


def _step(p: Process, flow: jax.Array, mass: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array, Rounding]:
    """mass_{t+1} [S, N], the probabilities [Q, N] of ending at step t, and the rounding noise of this step."""
    S, P = len(p.initial), len(p.pair_state)
    mass, moved, ended = jnp.split(flow.T @ mass, [S, S + P])
    lower, upper, fraction = (x[p.pair_excess] for x in _spread(p, discount))
    up = moved * fraction
    rows = jnp.tile(p.pair_state, 2)[:, None]
    mass = mass.at[rows, jnp.concatenate([lower, upper])].add(jnp.concatenate([moved - up, up]))
    # The noise is +(1 - fraction) gap with probability fraction, and -fraction gap otherwise.
    gap = p.support[upper] - p.support[lower]
    absolute = jnp.sum(2 * up * (1 - fraction) * gap)
    squared = jnp.sum(up * (1 - fraction) * gap**2)
    return mass, ended, Rounding(absolute, squared)


def _spread(p: Process, discount: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """[E, N] each: lower and upper neighbour of y + gamma^t e in the support, and the fraction that goes up."""
    y = p.support + discount * p.excess[:, None]
    lower = jnp.clip(jnp.searchsorted(p.support, y, side="right") - 1, 0, len(p.support) - 1)
    upper = jnp.minimum(lower + 1, len(p.support) - 1)
    above, gap = y - p.support[lower], p.support[upper] - p.support[lower]
    fraction = jnp.clip(above / jnp.where(gap > 0, gap, 1), 0, 1)
    fraction = jnp.where(gap - above <= p.tolerance, 1, fraction)
    return lower, upper, jnp.where(above <= p.tolerance, 0, fraction)
