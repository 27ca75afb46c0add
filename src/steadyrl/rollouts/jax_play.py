"""Whole episodes of JAX environments, played inside a compiled program: K policies, n episodes each.

An episode depends on its key alone: `envs.jax_env` says which random numbers of it are for what. The random numbers of
all steps are drawn before the first: drawn step by step, they would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiDiscrete, Tuple
from jax import Array

from steadyrl.envs.images import is_image
from steadyrl.envs.jax_env import JaxModel, action_key, reset_key, step_key
from steadyrl.envs.jax_simulator import episode_keys
from steadyrl.envs.spaces import choices, keeps_bytes, parts_of
from steadyrl.rollouts.acting import with_levels
from steadyrl.rollouts.episodes import Episodes

PLAYED_TOGETHER = 64
"""Episodes in one call that evaluates a policy. Always as many: the rounding of a product depends on its size."""


class JaxPolicy(Protocol):
    """A policy that acts in JAX. Implementations are hashable."""

    def jax_noise(self, key: Array) -> Array:
        """The random numbers of one action."""
        ...

    def act_jax(self, parameters: Any, observations: Array, noise: Array | None) -> Array:
        """[k, ...]: an action for each observation; the most likely one if `noise` is None."""
        ...

    def to_space(self, actions: Any) -> Any:
        """The actions in the form of the environment's action space."""
        ...


class JaxPlays(NamedTuple):
    """K x n whole episodes, padded to the horizon T."""

    observations: Array
    """[K, n, T, ...]: features before each step, before normalization."""
    actions: Array
    """[K, n, T, ...]: as chosen by the policy, before clipping."""
    rewards: Array
    """[K, n, T]: 0 in the padding."""
    lengths: Array
    """[K, n]."""
    last_observations: Array
    """[K, n, ...]: after the last step."""
    terminated: Array
    """[K, n]."""
    episode_metrics: dict[str, Array]
    """name -> [K, n]."""

    @property
    def mask(self) -> Array:
        """[K, n, T] bool: whether there is a step."""
        return jnp.arange(self.rewards.shape[-1]) < self.lengths[..., None]


class Act(Protocol):
    """Chooses the actions of K x n episodes."""

    def __call__(self, features: Array, noise: Array | None) -> tuple[Array, Array]:
        """The actions for features [K, n, ...]: as the policy and as the environment counts them."""
        ...


def policy_inputs(policy: Any, moments: Any, levels: Array | None, features: Array) -> Array:
    """What a policy sees of features [n, ..., d]: normalized, if there are moments, and behind them the levels [n]."""
    inputs: Array = moments.normalize(features) if moments else features
    return inputs if levels is None else jnp.asarray(with_levels(inputs, levels, takes_states(policy)))


def takes_states(policy: Any) -> bool:
    """Whether it is a table, which sees the index of a state."""
    return bool(getattr(policy, "takes_states", False))


def acting(policy: JaxPolicy, parameters: Any, moments: Any, levels: Array | None) -> Act:
    """How a policy acts with the parameters, moments (or ()) and levels (or None) of K agents, on a leading axis."""

    def act_one(parameters: Any, moments: Any, levels: Any, features: Array, noise: Any) -> tuple[Array, Array]:
        actions = policy.act_jax(parameters, policy_inputs(policy, moments, levels, features), noise)
        return actions, policy.to_space(actions)

    def act(features: Array, noise: Array | None) -> tuple[Array, Array]:
        act_each: Any = jax.vmap(act_one)
        actions: tuple[Array, Array] = act_each(parameters, moments, levels, features, noise)
        return actions

    return act


def play(
    model: JaxModel, act: Act, keys: Array, features: Callable[[Any], Array], noise: Callable[[Array], Array] | None
) -> JaxPlays:
    """One whole episode for each of the `keys` [K, n]; without `noise` with the most likely actions.

    `features` are those of one observation, `noise` the random numbers of one action from its key.
    """
    T = model.horizon
    times = jnp.arange(T)
    each = _over_episodes
    step_keys = jax.vmap(lambda t: each(lambda key: step_key(key, t))(keys))(times)
    drawn = None if noise is None else jax.vmap(lambda t: each(lambda key: noise(action_key(key, t)))(keys))(times)
    observations, states = each(lambda key: model.reset(reset_key(key)))(keys)
    first = each(features)(observations)
    action, _ = jax.eval_shape(act, first, None if drawn is None else drawn[0])

    def cond(carry: Any) -> Array:
        t, _, _, active, *_ = carry
        again: Array = (t < T) & active.any()
        return again

    def body(carry: Any) -> Any:
        t, states, now, active, lengths, terminated, buffers = carry
        actions, to_env = act(now, None if drawn is None else drawn[t])
        result = each(model.step)(step_keys[t], states, to_env)

        def unless_over(new: Array, old: Array) -> Array:
            return jnp.where(active.reshape(active.shape + (1,) * (new.ndim - active.ndim)), new, old)

        row = now, actions, unless_over(result.reward, jnp.zeros_like(result.reward))
        buffers = jax.tree.map(lambda all_steps, x: all_steps.at[t].set(x), buffers, row)
        after, states = jax.tree.map(unless_over, (each(features)(result.observation), result.state), (now, states))
        terminated |= active & result.terminated
        return (t + 1, states, after, active & ~(result.terminated | result.truncated), lengths + active, terminated,
                buffers)  # fmt: skip

    rows = first, action, jnp.zeros(keys.shape, jnp.float32)
    buffers = jax.tree.map(lambda x: jnp.zeros((T, *x.shape), x.dtype), rows)
    start = (jnp.int32(0), states, first, jnp.ones(keys.shape, bool), jnp.zeros(keys.shape, jnp.int32),
             jnp.zeros(keys.shape, bool), buffers)  # fmt: skip
    _, states, last, _, lengths, terminated, buffers = jax.lax.while_loop(cond, body, start)
    observations, actions, rewards = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 2), buffers)
    plays = JaxPlays(observations, actions, rewards, lengths, last, terminated, each(model.episode_metrics)(states))
    # What an episode that is over leaves behind is no step: its numbers are those of its last observation.
    return plays._replace(observations=_masked(observations, plays.mask), actions=_masked(actions, plays.mask))


def observation_features(space: gym.Space[Any], of_states: bool) -> Callable[[Any], Array]:
    """`envs.spaces.features` of one observation in JAX; for tables, the index of the state."""

    def features(observation: Any, space: gym.Space[Any] = space) -> Array:
        if isinstance(space, Dict | Tuple):
            rows = [features(observation[key], part) for key, part in parts_of(space)]
            return jnp.concatenate([row / 255 if row.dtype == jnp.uint8 else row for row in rows])
        if isinstance(space, Discrete):
            return jax.nn.one_hot(observation - int(space.start), int(space.n))
        if isinstance(space, MultiDiscrete):
            numbers = zip((observation - space.start).ravel(), choices(space), strict=True)
            return jnp.concatenate([jax.nn.one_hot(number, n) for number, n in numbers])
        if keeps_bytes(space):
            return jnp.asarray(observation, jnp.uint8).reshape(-1)
        row = jnp.asarray(observation, jnp.float32).reshape(-1)
        return row / 255 if is_image(space) else row

    return (lambda observation: jnp.asarray(observation, jnp.int32)) if of_states else features


def play_seeds(
    model: JaxModel, policy: JaxPolicy, parameters: Any, seen: Any, seeds: Sequence[int], deterministic: bool
) -> Episodes:
    """An episode of one policy from each seed, in NumPy; the same ones as `JaxEnvironment` begins from them."""
    parts = []
    one: Any = jax.tree.map(lambda x: jnp.asarray(x)[None], (parameters, seen))
    for start in range(0, len(seeds), PLAYED_TOGETHER):
        batch = list(seeds[start : start + PLAYED_TOGETHER])
        keys = episode_keys([*batch, *[batch[-1]] * (PLAYED_TOGETHER - len(batch))])[None]
        plays, mask = _play_seeds(model, policy, deterministic, *one, keys)
        parts.append(jax.tree.map(lambda x: np.asarray(x)[0], (plays, mask)))
    plays, mask = jax.tree.map(lambda *x: np.concatenate(x)[: len(seeds)], *parts)
    T = int(plays.lengths.max())
    return Episodes(
        observations=plays.observations[:, :T],
        actions=plays.actions[:, :T],
        rewards=plays.rewards[:, :T].astype(np.float64),
        mask=mask[:, :T].astype(np.float64),
        last_observations=plays.last_observations,
        terminated=plays.terminated,
        episode_metrics=plays.episode_metrics,
    )


@partial(jax.jit, static_argnames=("model", "policy", "deterministic"))
def _play_seeds(
    model: JaxModel, policy: Any, deterministic: bool, parameters: Any, seen: Any, keys: Array
) -> tuple[JaxPlays, Array]:
    features = observation_features(model.observation_space, takes_states(policy))
    act = acting(policy, parameters, seen, None)
    plays = play(model, act, keys, features, None if deterministic else policy.jax_noise)
    return plays, plays.mask


def _over_episodes(function: Callable[..., Any]) -> Any:
    return jax.vmap(jax.vmap(function))


def _masked(x: Array, mask: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, jnp.zeros_like(x))
