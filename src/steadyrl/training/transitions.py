"""Episodes as single transitions in order, for methods that learn from one step at a time."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steadyrl.rollouts.compiled import Plays, Tables, rewards_of
from steadyrl.training.batch import EpisodeBatch


class Transitions(NamedTuple):
    """n episodes of T steps, padded."""

    observations: Array
    """[n, T, ...]."""
    actions: Array
    """[n, T, ...]."""
    rewards: Array
    """[n, T]."""
    next_observations: Array
    """[n, T, ...]: after the step; arbitrary in the padding."""
    terminated: Array
    """[n, T] bool: the episode terminated with the step."""
    last: Array
    """[n, T] bool: the last step of the episode, terminated or truncated."""
    mask: Array
    """[n, T] bool: false in the padding."""
    returns: Array
    """[n]: R, the discounted return of each episode."""
    next_masks: Array | None = None
    """[n, T, A] bool: which actions are allowed after the step; None if there are no masks."""


def transitions_from_plays(tables: Tables, plays: Plays, discounts: Array) -> Transitions:
    """From compiled plays; every field has the leading axis of the K policies, and `discounts` is [K, T]."""
    _, A, outcomes = tables.reward.shape
    mask = jnp.moveaxis(plays.outcome >= 0, 0, -1)
    outcome = jnp.where(mask, jnp.moveaxis(plays.outcome, 0, -1), 0)
    rewards = jnp.moveaxis(rewards_of(tables, plays), 0, -1)
    return Transitions(
        observations=outcome // (A * outcomes),
        actions=outcome // outcomes % A,
        rewards=rewards,
        next_observations=tables.next_state.ravel()[outcome],
        terminated=tables.ends.ravel()[outcome] & mask,
        last=_last(mask),
        mask=mask,
        returns=(rewards * discounts[:, None]).sum(axis=-1),
    )


def transitions_from_episodes(episodes: EpisodeBatch) -> Transitions:
    """From the episodes of any environment."""
    mask = jnp.asarray(episodes.mask) > 0
    last = _last(mask)
    observations = jnp.asarray(episodes.observations)

    def following(x: Array, at_end: Array) -> Array:
        wide = last.reshape(*last.shape, *(1,) * (x.ndim - 2))
        return jnp.where(wide, at_end[:, None], jnp.roll(x, -1, axis=1))

    next_masks = None
    if episodes.action_masks is not None:
        next_masks = following(jnp.asarray(episodes.action_masks), jnp.asarray(episodes.last_action_masks))
    return Transitions(
        observations=observations,
        actions=jnp.asarray(episodes.actions),
        rewards=jnp.asarray(episodes.rewards, jnp.float32),
        next_observations=following(observations, jnp.asarray(episodes.last_observations)),
        terminated=last & jnp.asarray(episodes.terminated)[:, None],
        last=last,
        mask=mask,
        returns=episodes.returns,
        next_masks=next_masks,
    )


def _last(mask: Array) -> Array:
    """The last step of each episode."""
    followed = jnp.concatenate([mask[..., 1:], jnp.zeros_like(mask[..., :1])], axis=-1)
    return mask & ~followed
