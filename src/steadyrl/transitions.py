"""Episodes as single transitions in order, for methods that learn from one step at a time."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steadyrl.episodes import Episodes
from steadyrl.rollout import Plays, Tables, rewards_of


class Transitions(NamedTuple):
    """n episodes of T steps, padded."""

    observations: Array
    """[n, T, ...]."""
    actions: Array
    """[n, T, ...]."""
    rewards: Array
    """[n, T]."""
    next_observations: Array
    """[n, T, ...]: what was seen after the step; anything in the padding."""
    ends: Array
    """[n, T] bool: the step ended the episode of its own, so nothing comes after it."""
    last: Array
    """[n, T] bool: the step was the episode's last, whether it ended of its own or by a time limit."""
    happened: Array
    """[n, T] bool: false in the padding."""


def transitions_of_plays(tables: Tables, plays: Plays) -> Transitions:
    """From compiled plays; every field has the leading axis of the K policies."""
    _, A, outcomes = tables.reward.shape
    happened = jnp.moveaxis(plays.outcome >= 0, 0, -1)
    outcome = jnp.where(happened, jnp.moveaxis(plays.outcome, 0, -1), 0)
    return Transitions(
        observations=outcome // (A * outcomes),
        actions=outcome // outcomes % A,
        rewards=jnp.moveaxis(rewards_of(tables, plays), 0, -1),
        next_observations=tables.next_state.ravel()[outcome],
        ends=tables.ends.ravel()[outcome] & happened,
        last=_last(happened),
        happened=happened,
    )


def transitions_of_episodes(episodes: Episodes) -> Transitions:
    """From the episodes of any environment."""
    happened = jnp.asarray(episodes.mask) > 0
    last = _last(happened)
    observations = jnp.asarray(episodes.observations)
    following = jnp.roll(observations, -1, axis=1)
    at_end = jnp.asarray(episodes.last_observations)[:, None]
    wide = last.reshape(*last.shape, *(1,) * (observations.ndim - 2))
    return Transitions(
        observations=observations,
        actions=jnp.asarray(episodes.actions),
        rewards=jnp.asarray(episodes.rewards, jnp.float32),
        next_observations=jnp.where(wide, at_end, following),
        ends=last & jnp.asarray(episodes.terminated)[:, None],
        last=last,
        happened=happened,
    )


def _last(happened: Array) -> Array:
    """The last step that happened in each episode."""
    followed = jnp.concatenate([happened[..., 1:], jnp.zeros_like(happened[..., :1])], axis=-1)
    return happened & ~followed
