"""Whole episodes of JAX environments, played inside a compiled program: K policies, n episodes each.

An episode depends on its key alone: `envs.jax_env` says which random numbers of it are for what. The random numbers of
all steps are drawn before the first: drawn step by step, they would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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

PLAYED_TOGETHER, BYTES_TOGETHER = 64, 2**28
"""Episodes in one call that evaluates a policy, and what all of their steps may take up: where 64 would take more,
fewer are played together. Always as many, however many are asked for: the rounding of a product depends on its size.
The program needs about three times as much."""


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
            if new.shape[: active.ndim] != active.shape:  # Shared by all episodes: work space of MuJoCo Warp.
                return new
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
) -> Iterator[Episodes]:
    """An episode of one policy from each seed, in NumPy; the same ones as `JaxEnvironment` begins from them.

    Those of each call at a time, padded to the longest of them: all together could fill the memory.
    """
    size = episodes_together(model, policy)
    one: Any = jax.tree.map(lambda x: jnp.asarray(x)[None], (parameters, seen))
    for start in range(0, len(seeds), size):
        batch = list(seeds[start : start + size])
        keys = episode_keys([*batch, *[batch[-1]] * (size - len(batch))])[None]
        plays, mask = _play_seeds(model, policy, deterministic, *one, keys)
        yield _in_numpy(plays, mask, len(batch))


def episodes_together(model: JaxModel, policy: JaxPolicy) -> int:
    """How many episodes a call of `play_seeds` plays: a function of the program alone."""

    def one_step() -> Any:
        key = jax.random.key(0)
        features = observation_features(model.observation_space, takes_states(policy))(model.reset(key)[0])
        # The key of the environment and the random numbers of the policy are drawn before the first step.
        action, reward = jnp.zeros(model.action_space.shape or ()), jnp.float32(0)
        return features, action, reward, jax.random.key_data(key), policy.jax_noise(key)

    step: int = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(one_step)))
    return max(1, min(PLAYED_TOGETHER, BYTES_TOGETHER // (step * model.horizon)))


def joined(parts: Iterable[Episodes]) -> Episodes:
    """The episodes of several calls, padded to the longest of all."""
    parts = list(parts)
    T = max(part.mask.shape[1] for part in parts)

    def padded(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate([np.pad(x, [(0, 0), (0, T - x.shape[1]), *[(0, 0)] * (x.ndim - 2)]) for x in arrays])

    names = parts[0].episode_metrics
    return Episodes(
        **{name: padded(name) for name in ("observations", "actions", "rewards", "mask")},
        last_observations=np.concatenate([part.last_observations for part in parts]),
        terminated=np.concatenate([part.terminated for part in parts]),
        episode_metrics={name: np.concatenate([part.episode_metrics[name] for part in parts]) for name in names},
    )


@partial(jax.jit, static_argnames=("model", "policy", "deterministic"))
def _play_seeds(
    model: JaxModel, policy: Any, deterministic: bool, parameters: Any, seen: Any, keys: Array
) -> tuple[JaxPlays, Array]:
    features = observation_features(model.observation_space, takes_states(policy))
    act = acting(policy, parameters, seen, None)
    plays = play(model, act, keys, features, None if deterministic else policy.jax_noise)
    return plays, plays.mask


def _in_numpy(plays: JaxPlays, mask: Array, n: int) -> Episodes:
    """The first n episodes of the only policy, without the padding that all of them have."""
    plays, mask = jax.tree.map(lambda x: np.asarray(x)[0, :n], (plays, mask))
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


def _over_episodes(function: Callable[..., Any]) -> Any:
    return jax.vmap(jax.vmap(function))


def _masked(x: Array, mask: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, jnp.zeros_like(x))
