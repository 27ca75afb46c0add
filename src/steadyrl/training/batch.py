"""A batch of trajectories as the updates see it, in either of two forms that the same formulas serve.

Everything that an update sums over the steps of a trajectory is linear in how often a state-action pair occurs and in
the rewards to go from there. So a trajectory may be given step by step (L = T observations, the P = 1 action taken at
each), or, for tables, pair by pair (L = S observations, all P = A actions of each, with counts of visits and sums of
rewards to go). The second form is the same size for every length of episode and needs no look-ups: its observations
and actions are None, for "the whole table".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.rollouts.acting import with_levels
from steadyrl.rollouts.compiled import Plays, Tables, rewards_of
from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.returns import discount_factors, rewards_to_go
from steadyrl.training.rows import ROW, WHOLE, Rows, rows_needed

WORTH_PACKING = 0.8
"""A batch is packed if at most this share of its padded size is left: each size is compiled for."""


class EpisodeBatch(NamedTuple):
    """n episodes as K rows of L steps: `Episodes` with normalized observations, padded to one of a few sizes.

    Padded, each episode is one row; `packed` they take several short ones.
    """

    observations: Any
    actions: Any
    rewards: Any
    mask: Any
    last_observations: Any
    terminated: Any
    discounts: Any
    """[L], or [K, L] if it differs between rows: gamma^t, computed in 64 bits."""
    levels: Any = None
    """[n]: what each episode was played with besides its observations, which it is a part of; see `training.dial`."""
    rows: Rows = WHOLE
    """Which episode each row is of."""
    action_masks: Any = None
    """[K, L, A] bool: see `Episodes`."""
    last_action_masks: Any = None
    """[n, A] bool: see `Episodes`."""

    @classmethod
    def of(cls, episodes: Episodes, gamma: float, inputs: Callable[[Any], Any], levels: Any = None) -> EpisodeBatch:
        """Padded, with `inputs` of the observations: normalized, and with their levels."""
        T = episodes.rewards.shape[1]
        padding = padded_length(T) - T

        def pad(x: Any) -> Any:
            return np.concatenate([x, np.zeros((len(x), padding, *x.shape[2:]), x.dtype)], axis=1)

        return cls(
            observations=pad(inputs(episodes.observations)),
            actions=pad(episodes.actions),
            rewards=pad(episodes.rewards),
            mask=pad(episodes.mask),
            last_observations=inputs(episodes.last_observations),
            terminated=episodes.terminated,
            discounts=discount_factors(gamma, T + padding).astype(np.float32),
            levels=levels,
            action_masks=None if episodes.action_masks is None else pad(episodes.action_masks),
            last_action_masks=episodes.last_action_masks,
        )

    def packed(self) -> EpisodeBatch:
        """The same in short rows if that is worth it. NumPy."""
        n, L = self.mask.shape
        lengths = self.mask.sum(axis=-1)
        K = padded_length(int(rows_needed(lengths).sum()) * ROW) // ROW
        if L % ROW or WORTH_PACKING * n * L < K * ROW:
            return self
        rows = Rows.of(lengths, K)
        places, filled = rows.episode * (L // ROW) + rows.start // ROW, rows.start < lengths[rows.episode]

        def pack(x: Any) -> Any:
            packed = np.zeros((K, ROW, *x.shape[2:]), x.dtype)
            packed[filled] = x.reshape(-1, ROW, *x.shape[2:])[places[filled]]
            return packed

        return self._replace(
            observations=pack(self.observations),
            actions=pack(self.actions),
            rewards=pack(self.rewards),
            mask=pack(self.mask),
            discounts=pack(np.broadcast_to(self.discounts, (n, L))),
            rows=rows,
            action_masks=None if self.action_masks is None else pack(self.action_masks),
        )

    @property
    def returns(self) -> Array:
        """[n]: R, the discounted return of each episode."""
        return self.rows.total((jnp.asarray(self.rewards, jnp.float32) * self.discounts).sum(axis=-1))


def padded_length(T: int) -> int:
    """1, 16, 128, then 2^k and 3 * 2^k: few lengths, so that updates are rarely compiled, and little padding.

    Among the short ones an update costs less than its compilation.
    """
    if T <= 128:
        return 1 if T == 1 else 16 if T <= 16 else 128
    double = 1 << (T - 1).bit_length()
    return double * 3 // 4 if double * 3 // 4 >= T else double


class EveryState(NamedTuple):
    """In place of observations: every state of a table in order, at the level of each trajectory."""

    levels: Array
    """[n]."""


class Steps(NamedTuple):
    """K rows of T steps, in order: for credit that depends on what came before a step and after it."""

    observations: Array
    """[K, T, ...]."""
    rewards: Array
    """[K, T]: 0 in the padding."""
    mask: Array
    """[K, T]: 1, or 0 in the padding."""
    pairs: Array | None = None
    """[n, T]: the number s A + a of the state-action pair, where a batch is given pair by pair."""
    rows: Rows = WHOLE
    """Which episode each row is of."""

    @property
    def times(self) -> Array:
        """[K, T] or [T]: the time of each step."""
        return self.rows.times(self.mask.shape[1])

    @property
    def lengths(self) -> Array:
        """[n]: the number of steps of each episode."""
        return self.rows.total(self.mask.sum(axis=-1))

    @property
    def last(self) -> Array:
        """[K, T]: whether it is the last step of its episode."""
        return self.times == self.rows.spread(self.lengths)[:, None] - 1

    def returns(self, discount: Any) -> Array:
        """[n]: the return of each episode with another discount factor."""
        return self.rows.total((self.rewards * discount**self.times).sum(axis=-1))


class Weighting(NamedTuple):
    """The weight of each log pi(a_t|s_t) of trajectory i: `per_reward`_i g_t + `per_visit`_it."""

    per_reward: Array
    """[n]."""
    per_visit: Array
    """[K, L] or [K, 1]."""


class Batch(NamedTuple):
    """n trajectories as K rows of L observations with P actions each; K is n unless `rows` says otherwise."""

    observations: Array | EveryState | None
    """[K, L, ...], or None for every state in order; `EveryState` where policies differ between trajectories."""
    actions: Array | None
    """[K, L, P, ...], or None for every action in order."""
    visits: Array
    """[K, L, P]: how often the trajectory took the action there; 0 in the padding."""
    rewards_to_go: Array
    """[K, L, P]: g, summed over those visits; without gamma^t in front (deviation 6)."""
    returns: Array
    """[n]: R, the discounted return of the whole trajectory."""
    lengths: Array
    """[n]: T, the number of steps."""
    squared_rewards_to_go: Array
    """[n]: the sum of g^2 over the steps."""
    state_visits: Array
    """[K, L]: `visits` summed over the actions. All updates on a batch share these two sums."""
    state_rewards_to_go: Array
    """[K, L]: `rewards_to_go` summed over the actions."""
    steps: Steps
    """The same trajectories, step by step."""
    levels: Array | None = None
    """[n]: see `EpisodeBatch`."""
    action_masks: Array | None = None
    """[K, L, A] bool: see `Episodes`."""

    @property
    def rows(self) -> Rows:
        """Which trajectory each row is of."""
        return self.steps.rows

    @classmethod
    def of(
        cls,
        observations: Array | EveryState | None,
        actions: Array | None,
        visits: Array,
        rewards_to_go: Array,
        returns: Array,
        lengths: Array,
        squared_rewards_to_go: Array,
        steps: Steps,
        levels: Array | None = None,
        action_masks: Array | None = None,
    ) -> Batch:
        """A batch with its sums."""
        sums = visits.sum(axis=-1), rewards_to_go.sum(axis=-1)
        given = observations, actions, visits, rewards_to_go, returns, lengths, squared_rewards_to_go
        return cls(*given, *sums, steps, levels, action_masks)

    def with_credit(self, credit: Array) -> Batch:
        """The batch with `credit` [K, T] of each step added to the rewards to go that weigh log pi.

        The value function still learns from the rewards to go as they were.
        """
        pairs = self.steps.pairs
        if pairs is None:
            summed = credit[..., None]
        else:
            n, S, A = self.visits.shape
            summed = jnp.zeros((n, S * A)).at[jnp.arange(n)[:, None], pairs].add(credit).reshape(n, S, A)
        return self._replace(rewards_to_go=self.rewards_to_go + summed)

    def without_rewards(self) -> Batch:
        """The batch with no rewards to go that weigh log pi."""
        return self._replace(rewards_to_go=jnp.zeros_like(self.rewards_to_go))

    def total(self, x: Array) -> Array:
        """[n]: the sum over all visits of a trajectory of x, which is [K, L, P], or [L, P] for the whole table."""
        # As a product of matrices it is vectorized; a plain sum of floats is not, for its order is fixed.
        if x.ndim == 2:
            return jnp.tensordot(self.visits, x, axes=2)
        return self.rows.total((self.visits * x).sum(axis=(1, 2)))

    def weights(self, weighting: Weighting) -> Array:
        """The weight of each log pi in the sum over trajectories and steps: [K, L, P], or [L, P] for the whole table.

        The latter is summed over the trajectories already.
        """
        per_reward, per_visit = weighting
        by_visit = per_visit[..., None] * self.visits
        if self.observations is None:
            by_reward = jnp.tensordot(per_reward, self.rewards_to_go, axes=1)
            return by_reward + jnp.tensordot(jnp.ones_like(per_reward), by_visit, axes=1)
        return self.rows.spread(per_reward)[:, None, None] * self.rewards_to_go + by_visit


def batch_from_episodes(episodes: EpisodeBatch, gamma: Any) -> Batch:
    """Step by step, from the episodes of any environment."""
    mask, rows = jnp.asarray(episodes.mask, jnp.float32), episodes.rows
    g = rewards_to_go(jnp.asarray(episodes.rewards, jnp.float32), gamma, rows) * mask
    return Batch.of(
        observations=jnp.asarray(episodes.observations),
        actions=jnp.asarray(episodes.actions)[:, :, None],
        visits=mask[..., None],
        rewards_to_go=g[..., None],
        returns=episodes.returns,
        lengths=rows.total(mask.sum(axis=-1)),
        squared_rewards_to_go=rows.total((g**2).sum(axis=-1)),
        steps=steps_from_episodes(episodes),
        levels=None if episodes.levels is None else jnp.asarray(episodes.levels),
        action_masks=None if episodes.action_masks is None else jnp.asarray(episodes.action_masks),
    )


def steps_from_episodes(episodes: EpisodeBatch) -> Steps:
    """Step by step, from the episodes of any environment."""
    rewards, mask = jnp.asarray(episodes.rewards, jnp.float32), jnp.asarray(episodes.mask, jnp.float32)
    return Steps(jnp.asarray(episodes.observations), rewards, mask, rows=episodes.rows)


def batch_from_plays(tables: Tables, plays: Plays, gamma: Array, levels: Array | None = None) -> Batch:
    """Pair by pair, from compiled plays; every field has the leading axis of the K policies, and `gamma` is [K].

    `levels` [K, n] are those of the episodes, where policies are played at several.
    """
    S, A, outcomes = tables.reward.shape
    mask = plays.outcome >= 0
    rewards = jnp.moveaxis(rewards_of(tables, plays), 0, -1)
    g = jnp.moveaxis(rewards_to_go(rewards, gamma[:, None]), -1, 0)
    pair = jnp.where(mask, plays.outcome // outcomes, 0)
    pairs = jnp.moveaxis(pair, 0, -1)
    states = pairs // A
    _, K, n = pair.shape
    policy, episode = jnp.indices((K, n))
    each = jnp.stack([mask.astype(g.dtype), g * mask], axis=-1)
    sums = jnp.zeros((K, n, S * A, 2), g.dtype).at[policy, episode, pair].add(each)
    return Batch.of(
        observations=None if levels is None else EveryState(levels),
        actions=None,
        visits=sums[..., 0].reshape(K, n, S, A),
        rewards_to_go=sums[..., 1].reshape(K, n, S, A),
        returns=g[0],
        lengths=mask.sum(axis=0).astype(g.dtype),
        squared_rewards_to_go=((g * mask) ** 2).sum(axis=0),
        steps=Steps(
            states if levels is None else jax.vmap(partial(with_levels, of_states=True))(states, levels),
            rewards,
            jnp.moveaxis(mask.astype(g.dtype), 0, -1),
            pairs,
        ),
        levels=levels,
    )
