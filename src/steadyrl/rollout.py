"""The compiled collector: many whole episodes of a finite Markov decision process, inside one JAX program.

K policies (one per seed) play n episodes each, side by side. Everything random about an episode follows from its key,
and everything random about step t from `fold_in(key, t)`, so an episode does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.episodes import Episodes
from steadyrl.mdp import FiniteMDP

Facts = Callable[[Any, Any], dict[str, Any]]
"""`facts(visits [..., S * A], ended [...]) -> name -> [...]`: what to say of episodes; hashable, traceable by JAX."""


class FiniteFace(Protocol):
    """What an environment offers, as `finite_face`, to be played here."""

    @property
    def mdp(self) -> FiniteMDP:
        """The process."""
        ...

    @property
    def facts(self) -> Facts:
        """What to say of its episodes."""
        ...


def finite_face(env: Any) -> FiniteFace | None:
    """The finite face of an environment; None if it has none, or wears a wrapper that might change what it does."""
    while isinstance(env, gym.Wrapper):
        if not isinstance(env, HARMLESS_WRAPPERS):
            return None
        env = env.env
    return getattr(env, "finite_face", None)


HARMLESS_WRAPPERS = (gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker)
"""What `gymnasium.make` puts around an environment without changing what it does."""


class Tables(NamedTuple):
    """A `FiniteMDP` as the arrays that a compiled step looks things up in."""

    next_state: Array  # [S, A, K]
    reward: Array  # [S, A, K]
    ends: Array  # [S, A, K]
    outcome_thresholds: Array  # [S, A, K - 1]
    start_thresholds: Array  # [S - 1]

    @classmethod
    def of(cls, mdp: FiniteMDP) -> Tables:
        """The tables of a process, in 32 bits."""
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
    """[T, K, n] int: (s * A + a) * K + k of each step, and -1 after the episode's end."""
    ended: Array
    """[K, n] bool: whether the episode came to an end of its own, rather than to the horizon."""


def uniforms(keys: Array, t: Array | int) -> Array:
    """Two uniform numbers in [0, 1) for each key and step [..., 2]: the words that the counter t hashes to."""
    fold: Any = jax.random.fold_in
    for _ in range(keys.ndim):
        fold = jax.vmap(fold, in_axes=(0, None))
    words = jax.random.key_data(fold(keys, t))
    # 24 of the 32 bits: all that a float32 below 1 can hold.
    u: Array = (words >> 8).astype(jnp.float32) * jnp.float32(2**-24)
    return u


def step(tables: Tables, s: Array, a: Array, u: Array) -> tuple[Array, Array, Array, Array]:
    """One transition, elementwise: the outcome's index, the next state, the reward, and whether the episode ends."""
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
    """N = keys.shape[1] whole episodes of each policy; `probabilities` [K, S, A], `keys` [K, n]."""
    K, S, A = probabilities.shape
    thresholds = jnp.cumsum(probabilities, axis=-1)[..., :-1].reshape(K * S, A - 1)
    row = jnp.arange(K, dtype=jnp.int32)[:, None] * S

    # Steps are counted 0 .. horizon - 1, so the counter `horizon` is free for the choice of the first state.
    start = (uniforms(keys, horizon)[..., :1] >= tables.start_thresholds).sum(-1, dtype=jnp.int32)

    def anyone_playing(carry: tuple[Array, Array, Array, Array]) -> Array:
        t, _, playing, _ = carry
        return (t < horizon) & playing.any()

    def advance(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        t, s, playing, outcomes = carry
        u = uniforms(keys, t)
        a = (u[..., :1] >= thresholds[row + s]).sum(-1, dtype=jnp.int32)
        outcome, s, _, ends = step(tables, s, a, u[..., 1])
        outcomes = outcomes.at[t].set(jnp.where(playing, outcome, -1))
        return t + 1, s, playing & ~ends, outcomes

    nothing = jnp.full((horizon, *keys.shape), -1, jnp.int32)
    carry = (jnp.int32(0), start, jnp.ones(keys.shape, bool), nothing)
    _, _, playing, outcomes = jax.lax.while_loop(anyone_playing, advance, carry)
    return Plays(outcomes, ~playing)


def rewards_of(tables: Tables, plays: Plays) -> Array:
    """[T, K, n]: the reward of each step, 0 after the end."""
    return jnp.where(plays.outcome >= 0, tables.reward.ravel()[plays.outcome], 0.0)


def sample_episodes(face: FiniteFace, probabilities: Any, n: int, key: Array) -> Episodes:
    """N episodes of one policy, step by step, as any collector gives them; rewards in 64 bits."""
    mdp = face.mdp
    A, outcomes = mdp.reward.shape[1:]
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
    plays = _play(Tables.of(mdp), jnp.asarray(probabilities, jnp.float32)[None], keys[None], mdp.horizon)
    outcome, ended = np.asarray(plays.outcome)[:, 0].T, np.asarray(plays.ended)[0]
    happened = outcome >= 0
    pair = np.where(happened, outcome // outcomes, 0)
    visits = np.zeros((n, mdp.n_states * A))
    np.add.at(visits, (np.arange(n)[:, None], pair), happened)
    return Episodes(
        observations=pair // A,
        actions=pair % A,
        rewards=np.where(happened, mdp.reward.ravel()[outcome], 0.0),
        mask=happened.astype(np.float64),
        last_observations=mdp.next_state.ravel()[outcome[np.arange(n), happened.sum(axis=1) - 1]],
        terminated=ended,
        facts={name: np.asarray(value) for name, value in face.facts(visits, ended).items()},
    )


_play = jax.jit(play, static_argnames="horizon")
