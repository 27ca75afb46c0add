"""A batch of trajectories as the updates see it, in either of two forms that the same formulas serve.

Everything that an update sums over the steps of a trajectory is linear in how often a state-action pair occurs and in
the rewards to go from there. So a trajectory may be given step by step (L = T observations, the P = 1 action taken at
each), or, for tables, pair by pair (L = S observations, all P = A actions of each, with counts of visits and sums of
rewards to go). The second form is the same size for every length of episode and needs no look-ups: its observations
and actions are None, for "the whole table".
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steadyrl.episodes import Episodes
from steadyrl.returns import discounted_returns, rewards_to_go
from steadyrl.rollout import Plays, Tables, rewards_of


class Batch(NamedTuple):
    """n trajectories of L observations with P actions each."""

    observations: Array | None
    """[n, L, ...], or None for every state in order."""
    actions: Array | None
    """[n, L, P, ...], or None for every action in order."""
    visits: Array
    """[n, L, P]: how often the trajectory took the action there; 0 in the padding."""
    rewards_to_go: Array
    """[n, L, P]: g, summed over those visits; without gamma^t in front (deviation 6)."""
    returns: Array
    """[n]: R, the discounted return of the whole trajectory."""
    lengths: Array
    """[n]: T, the number of steps."""
    state_visits: Array
    """[n, L]: `visits` summed over the actions. All updates on a batch share these two sums."""
    state_rewards_to_go: Array
    """[n, L]: `rewards_to_go` summed over the actions."""

    @classmethod
    def of(
        cls,
        observations: Array | None,
        actions: Array | None,
        visits: Array,
        rewards_to_go: Array,
        returns: Array,
        lengths: Array,
    ) -> Batch:
        """A batch with its sums."""
        sums = visits.sum(axis=-1), rewards_to_go.sum(axis=-1)
        return cls(observations, actions, visits, rewards_to_go, returns, lengths, *sums)

    def total(self, x: Array) -> Array:
        """[n]: the sum over all visits of a trajectory of x, which is [n, L, P], or [L, P] for the whole table."""
        # As a product of matrices it is vectorised; a plain sum of floats is not, for its order is fixed.
        return jnp.tensordot(self.visits, x, axes=2) if x.ndim == 2 else (self.visits * x).sum(axis=(1, 2))

    def weights(self, per_reward: Array, per_visit: Array) -> Array:
        """What each log pi weighs in the sum over trajectories i and steps t of (a_i g_t + c_it) log pi(a_t|s_t).

        `per_reward` is a [n] and `per_visit` c [n, L]. The result is [n, L, P], or for the whole table [L, P], already
        summed over the trajectories.
        """
        by_visit = per_visit[..., None] * self.visits
        if self.observations is None:
            by_reward = jnp.tensordot(per_reward, self.rewards_to_go, axes=1)
            return by_reward + jnp.tensordot(jnp.ones_like(per_reward), by_visit, axes=1)
        return per_reward[:, None, None] * self.rewards_to_go + by_visit


def batch_of_steps(episodes: Episodes, gamma: float) -> Batch:
    """Step by step, from the episodes of any environment."""
    mask = jnp.asarray(episodes.mask, jnp.float32)
    rewards = jnp.asarray(episodes.rewards, jnp.float32)
    return Batch.of(
        observations=jnp.asarray(episodes.observations),
        actions=jnp.asarray(episodes.actions)[:, :, None],
        visits=mask[..., None],
        rewards_to_go=(rewards_to_go(rewards, gamma) * mask)[..., None],
        returns=discounted_returns(rewards, gamma),
        lengths=mask.sum(axis=-1),
    )


def batch_of_pairs(tables: Tables, plays: Plays, gamma: float) -> Batch:
    """Pair by pair, from compiled plays; every field has the leading axis of the K policies."""
    S, A, outcomes = tables.reward.shape
    happened = plays.outcome >= 0
    g = jnp.moveaxis(rewards_to_go(jnp.moveaxis(rewards_of(tables, plays), 0, -1), gamma), -1, 0)
    pair = jnp.where(happened, plays.outcome // outcomes, 0)
    _, K, n = pair.shape
    policy, episode = jnp.indices((K, n))
    each = jnp.stack([happened.astype(g.dtype), g * happened], axis=-1)
    sums = jnp.zeros((K, n, S * A, 2), g.dtype).at[policy, episode, pair].add(each)
    return Batch.of(
        observations=None,
        actions=None,
        visits=sums[..., 0].reshape(K, n, S, A),
        rewards_to_go=sums[..., 1].reshape(K, n, S, A),
        returns=g[0],
        lengths=happened.sum(axis=0).astype(g.dtype),
    )
