"""The compiled collector: many whole episodes of a finite Markov decision process, inside one JAX program.

K policies, one for each seed, play n episodes each. The random numbers of step t of an episode come from
`fold_in(key, t)` with the episode's key, so an episode does not depend on the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.envs.finite import FiniteModel
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.rollouts.episodes import Episodes


class Tables(NamedTuple):
    """A `FiniteMDP` as lookup tables for compiled steps."""

    next_state: Array  # [S, A, K]
    reward: Array  # [S, A, K]
    ends: Array  # [S, A, K]
    outcome_thresholds: Array  # [S, A, K - 1]
    start_thresholds: Array  # [S - 1]

    @classmethod
    def of(cls, mdp: FiniteMDP) -> Tables:
        """The tables of a process, in int32 and float32."""
        return cls(
            next_state=jnp.asarray(mdp.next_state, jnp.int32),
            reward=jnp.asarray(mdp.reward, jnp.float32),
            ends=jnp.asarray(mdp.ends),
            outcome_thresholds=jnp.asarray(np.cumsum(mdp.probability, -1)[..., :-1], jnp.float32),
            start_thresholds=jnp.asarray(np.cumsum(mdp.initial)[:-1], jnp.float32),
        )


class Plays(NamedTuple):
    """The steps of K x n episodes of at most T steps."""

    outcome: Array
    """[T, K, n] int: the index (s * A + a) * K + k of the outcome of each step; -1 after the end of the episode."""
    ended: Array
    """[K, n] bool: whether the episode terminated, rather than reaching the horizon."""


def uniforms(keys: Array, t: Array | int) -> Array:
    """[..., 2]: two uniform numbers in [0, 1) for step t of each key, from the two words of `fold_in(key, t)`."""
    fold: Any = jax.random.fold_in
    for _ in range(keys.ndim):
        fold = jax.vmap(fold, in_axes=(0, None))
    words = jax.random.key_data(fold(keys, t))
    # 24 of the 32 bits: the precision of a float32.
    u: Array = (words >> 8).astype(jnp.float32) * jnp.float32(2**-24)
    return u


def step(tables: Tables, s: Array, a: Array, u: Array) -> tuple[Array, Array, Array, Array]:
    """One transition, elementwise: the index of the outcome, next state, reward, and whether the episode terminates."""
    S, A, K = tables.reward.shape
    pair = s * A + a
    k = (u[..., None] >= tables.outcome_thresholds.reshape(S * A, K - 1)[pair]).sum(-1, dtype=jnp.int32)
    outcome = pair * K + k
    return (
        outcome,
        tables.next_state.ravel()[outcome],
        tables.reward.ravel()[outcome],
        tables.ends.ravel()[outcome],
    )


def play(tables: Tables, probabilities: Array, keys: Array, horizon: int) -> Plays:
    """One whole episode for each of the `keys` [K, n], with policy k given by `probabilities` [K, S, A]."""
    K, S, A = probabilities.shape
    thresholds = jnp.cumsum(probabilities, axis=-1)[..., :-1].reshape(K * S, A - 1)
    row = jnp.arange(K, dtype=jnp.int32)[:, None] * S

    # Steps are numbered 0 .. horizon - 1, so the number `horizon` is free for the choice of the initial state.
    start = (uniforms(keys, horizon)[..., :1] >= tables.start_thresholds).sum(-1, dtype=jnp.int32)

    def cond(carry: tuple[Array, Array, Array, Array]) -> Array:
        t, _, active, _ = carry
        return (t < horizon) & active.any()

    def body(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        t, s, active, outcomes = carry
        u = uniforms(keys, t)
        a = (u[..., :1] >= thresholds[row + s]).sum(-1, dtype=jnp.int32)
        outcome, s, _, ends = step(tables, s, a, u[..., 1])
        outcomes = outcomes.at[t].set(jnp.where(active, outcome, -1))
        return t + 1, s, active & ~ends, outcomes

    empty = jnp.full((horizon, *keys.shape), -1, jnp.int32)
    carry = (jnp.int32(0), start, jnp.ones(keys.shape, bool), empty)
    _, _, active, outcomes = jax.lax.while_loop(cond, body, carry)
    return Plays(outcomes, ~active)


def rewards_of(tables: Tables, plays: Plays) -> Array:
    """[T, K, n]: the reward of each step; 0 after the end of the episode."""
    return jnp.where(plays.outcome >= 0, tables.reward.ravel()[plays.outcome], 0.0)


def sample_episodes(model: FiniteModel, probabilities: Any, n: int, key: Array, first: int = 0) -> Episodes:
    """`n` episodes of one policy `probabilities` [S, A], from number `first` on, with rewards in float64."""
    mdp = model.mdp
    A, outcomes = mdp.reward.shape[1:]
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(first, first + n))
    plays = _play(Tables.of(mdp), jnp.asarray(probabilities, jnp.float32)[None], keys[None], mdp.horizon)
    outcome, ended = np.asarray(plays.outcome)[:, 0].T, np.asarray(plays.ended)[0]
    mask = outcome >= 0
    pair = np.where(mask, outcome // outcomes, 0)
    visits = np.zeros((n, mdp.n_states * A))
    np.add.at(visits, (np.arange(n)[:, None], pair), mask)
    return Episodes(
        observations=pair // A,
        actions=pair % A,
        rewards=np.where(mask, mdp.reward.ravel()[outcome], 0.0),
        mask=mask.astype(np.float64),
        last_observations=mdp.next_state.ravel()[outcome[np.arange(n), mask.sum(axis=1) - 1]],
        terminated=ended,
        episode_metrics={name: np.asarray(value) for name, value in model.metrics(visits, ended).items()},
    )


def outcomes_of(mdp: FiniteMDP, episodes: Episodes) -> np.ndarray:
    """[n, T]: the outcome of each step of `sample_episodes`, found by its reward and next state; 0 in the padding.

    Where outcomes have both in common, it does not matter which of them it was.
    """
    steps = np.arange(episodes.actions.shape[1])
    is_last = steps + 1 == episodes.mask.sum(axis=1)[:, None]
    after = np.where(is_last, episodes.last_observations[:, None], np.roll(episodes.observations, -1, axis=1))
    pair = episodes.observations, episodes.actions
    same = (mdp.reward[pair] == episodes.rewards[..., None]) & (mdp.next_state[pair] == after[..., None])
    return np.asarray(np.where(episodes.mask > 0, same.argmax(axis=-1), 0))


_play = jax.jit(play, static_argnames="horizon")
