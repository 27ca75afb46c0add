"""The dynamic programme over (state, accumulated reward), forward in time.

Most rewards are one constant r0 (the maze: -1). So only the excess is accumulated, Y_t = sum_{k<t} gamma^k
(r_k - r0), on a fixed support, and r0 sum_{k<=t} gamma^k is added when an episode ends at step t. With
mass_t[s, y] the probability that step t begins in s with Y_t = y,

    mass_{t+1}[s', y'] = sum over s, y and outcomes (s, e, s') that go on of
                         mass_t[s, y] * flow[s, (e, s')] * spread(y' | y + gamma^t e),

where flow is linear in the policy and spread divides a value between its two neighbours on the support so
that its mean is kept. The reward that ends an episode is never rounded.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steadyrl.exact.support import Floats, accumulated
from steadyrl.mdp import FiniteMDP

Ints = NDArray[np.int64]
Pair = tuple[jax.Array, jax.Array]


class Process(NamedTuple):
    """What the recursion reads: n outcomes of positive probability, a support of N points, T = horizon - 1.

    A step sends probability to one of C = S + P + Q columns: to state s' with no excess (S of them), to a
    pair (excess, s') (P of them), or out of the episode with one of Q excesses. In the last step every
    outcome is an end.
    """

    state: Ints
    """[n]: the state an outcome starts from."""
    action: Ints
    """[n]: the action it follows."""
    probability: Floats
    """[n]: its probability, given both."""
    column: Ints
    """[n]: the column it goes to, before the last step."""
    last_column: Ints
    """[n]: the index in `last_excess` of what it pays, in the last step."""
    excess: Floats
    """[E]: the distinct excesses other than 0 of outcomes that do not end the episode."""
    moved_excess: Ints
    """[P]: the index in `excess` of each pair."""
    moved_state: Ints
    """[P]: the state s' of each pair."""
    end_excess: Floats
    """[Q]: the distinct excesses of outcomes that end the episode."""
    last_excess: Floats
    """[L]: the distinct excesses of all outcomes."""
    initial: Floats
    """[S]: the distribution of the first state."""
    discount: Floats
    """[T + 1]: gamma^t."""
    base: Floats
    """[T + 1]: r0 sum_{k<=t} gamma^k."""
    support: Floats
    """[N]: the values of Y, ascending."""
    tolerance: float
    """Values closer than this differ by the rounding of floating-point numbers only."""


class Rounding(NamedTuple):
    """What spreading did to Y, in sum over all steps: moves delta of mean zero."""

    absolute: jax.Array
    """E sum |delta|."""
    squared: jax.Array
    """E sum delta^2."""


def process(mdp: FiniteMDP, gamma: float, points: int) -> Process:
    """The arrays of `mdp` as the recursion reads them, with a support of at most about `points` values."""
    state, action, k = np.nonzero(mdp.probability > 0)
    reward, ends = mdp.reward[state, action, k], mdp.ends[state, action, k]
    next_state = mdp.next_state[state, action, k]
    rewards, counts = np.unique(reward[~ends] if not np.all(ends) else reward, return_counts=True)
    r0 = rewards[np.argmax(counts)]
    payment = reward - r0
    discount = gamma ** np.arange(mdp.horizon, dtype=np.float64)
    moves = ~ends & (payment != 0)

    shifts, alive = [], mdp.initial > 0
    for t in range(mdp.horizon - 1):
        shifts.append(discount[t] * np.unique(payment[moves & alive[state]]))
        alive = np.isin(np.arange(mdp.n_states), next_state[~ends & alive[state]])
    # 4 H eps: a sum of H terms is off by at most H eps / 2 of its largest possible size.
    size = sum(np.max(np.abs(shift), initial=0) for shift in shifts)
    tolerance = 4 * mdp.horizon * np.finfo(np.float64).eps * size

    excess, which = np.unique(payment[moves], return_inverse=True)
    pairs, moved_column = np.unique(which * mdp.n_states + next_state[moves], return_inverse=True)
    end_excess, end_column = np.unique(payment[ends], return_inverse=True)
    last_excess, last_column = np.unique(payment, return_inverse=True)
    column = next_state.astype(np.int64)
    column[moves] = mdp.n_states + moved_column
    column[ends] = mdp.n_states + len(pairs) + end_column

    return Process(
        state=state,
        action=action,
        probability=mdp.probability[state, action, k],
        column=column,
        last_column=last_column,
        excess=excess,
        moved_excess=pairs // mdp.n_states,
        moved_state=pairs % mdp.n_states,
        end_excess=end_excess,
        last_excess=last_excess,
        initial=mdp.initial.copy(),
        discount=discount,
        base=r0 * np.cumsum(discount),
        support=accumulated(shifts, points, tolerance),
        tolerance=tolerance,
    )


def values(p: Process) -> Floats:
    """[M], M = T Q N + L N: the return of an episode that ends at step t with excess e after Y_t = y."""
    on_the_way = p.base[:-1, None, None] + p.discount[:-1, None, None] * p.end_excess[:, None] + p.support
    at_the_horizon = p.base[-1] + p.discount[-1] * p.last_excess[:, None] + p.support
    return np.concatenate([on_the_way.ravel(), at_the_horizon.ravel()])


@jax.jit
def probabilities(p: Process, policy: jax.Array, only_possible: bool) -> tuple[jax.Array, Rounding]:
    """The probability of each of `values` under `policy` [S, A], and the rounding done on the way.

    With `only_possible`, numbers that are positive where the probability is. Products of many small
    probabilities would vanish, so the masses are set to 1 after each step.
    """
    flow, last_flow = _flows(p, policy)

    def step(mass: jax.Array, discount: jax.Array) -> tuple[jax.Array, tuple[jax.Array, Rounding]]:
        mass, ended, rounding = _step(p, flow, mass, discount)
        return jnp.where(only_possible, jnp.sign(mass), mass), (ended, rounding)

    mass, (ended, rounding) = jax.lax.scan(step, _start(p), jnp.asarray(p.discount[:-1]))
    total = Rounding(rounding.absolute.sum(), rounding.squared.sum())
    return jnp.concatenate([ended.ravel(), (last_flow.T @ mass).ravel()]), total


@jax.jit
def pulled_back(p: Process, logits: jax.Array, weights: jax.Array, squared_weight: float) -> jax.Array:
    """[S, A]: the gradient of sum_x weights(x) probability(x) + squared_weight * Rounding.squared by logits."""

    def weighted(logits: jax.Array) -> jax.Array:
        every, rounding = probabilities(p, jax.nn.softmax(logits), False)
        total: jax.Array = every @ weights + squared_weight * rounding.squared
        return total

    by_logits: jax.Array = jax.grad(weighted)(logits)
    return by_logits


def _flows(p: Process, policy: jax.Array) -> Pair:
    """[S, C] and [S, L]: the probability of each column, before the last step and in it."""
    S = len(p.initial)
    C = S + len(p.moved_state) + len(p.end_excess)
    weight = policy[p.state, p.action] * p.probability
    state, column = jnp.tile(p.state, 2), jnp.concatenate([p.column, C + p.last_column])
    flows = jnp.zeros((S, C + len(p.last_excess))).at[state, column].add(jnp.tile(weight, 2))
    return flows[:, :C], flows[:, C:]


def _start(p: Process) -> jax.Array:
    """mass_0 [S, N]: nothing is accumulated yet."""
    zero = jnp.argmin(jnp.abs(p.support))
    return jnp.outer(p.initial, jnp.arange(len(p.support)) == zero)


def _step(p: Process, flow: jax.Array, mass: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array, Rounding]:
    """mass_{t+1} [S, N], the probabilities [Q, N] of ending at step t, and the rounding done."""
    S, P = len(p.initial), len(p.moved_state)
    mass, moved, ended = jnp.split(flow.T @ mass, [S, S + P])
    lower, upper, fraction = (x[p.moved_excess] for x in _spread(p, discount))
    up = moved * fraction
    rows = jnp.tile(p.moved_state, 2)[:, None]
    mass = mass.at[rows, jnp.concatenate([lower, upper])].add(jnp.concatenate([moved - up, up]))
    # Up by (1 - fraction) gap with probability fraction, else down by fraction gap.
    gap = p.support[upper] - p.support[lower]
    absolute = jnp.sum(2 * up * (1 - fraction) * gap)
    squared = jnp.sum(up * (1 - fraction) * gap**2)
    return mass, ended, Rounding(absolute, squared)


def _spread(p: Process, discount: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """[E, N] each: the neighbours of y + gamma^t e on the support, and the fraction the upper one gets."""
    y = p.support + discount * p.excess[:, None]
    lower = jnp.clip(jnp.searchsorted(p.support, y, side="right") - 1, 0, len(p.support) - 1)
    upper = jnp.minimum(lower + 1, len(p.support) - 1)
    above, gap = y - p.support[lower], p.support[upper] - p.support[lower]
    fraction = jnp.clip(above / jnp.where(gap > 0, gap, 1), 0, 1)
    fraction = jnp.where(gap - above <= p.tolerance, 1, fraction)
    return lower, upper, jnp.where(above <= p.tolerance, 0, fraction)
