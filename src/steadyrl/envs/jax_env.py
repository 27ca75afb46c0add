"""Environments that are pure functions in JAX: episodes and updates become one compiled program.

`JaxEnv` is the protocol for your own. `JaxModel` is what the rest of the library sees, whatever library an environment
comes from; see `jax_libraries`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import jax.numpy as jnp
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from jax import Array

from steadyrl.envs.finite import TRANSPARENT_WRAPPERS
from steadyrl.envs.spaces import shown_space

_ACTIONS = 2**31
"""Steps have smaller numbers."""


class JaxEnv(Protocol):
    """A pair of pure functions, and what they take and return. The same arguments give the same result.

    `jax.jit` and `jax.vmap` are applied to both. A state is any pytree of arrays, of the same shapes and dtypes after
    every step. An optional method `episode_metrics(state) -> name -> number` is called with the last state of an
    episode.
    """

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Box, Discrete, or Dict of these."""
        ...

    @property
    def action_space(self) -> gym.Space[Any]:
        """Discrete, or Box of floats."""
        ...

    @property
    def horizon(self) -> int:
        """The number of steps after which an episode is truncated."""
        ...

    def reset(self, key: Array) -> tuple[Any, Any]:
        """The first observation, and the state of a new episode."""
        ...

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, ...]:
        """(observation, state, reward, terminated), and a fifth, `truncated`, if more than the horizon truncates."""
        ...


class JaxStep(NamedTuple):
    """One step of one episode."""

    observation: Any
    state: Any
    reward: Array
    terminated: Array
    truncated: Array
    """Before the horizon."""


class JaxModel:
    """A JAX environment in the form that compiled programs take. Equal models are the same environment.

    Subclasses set the attributes, define `start` and `advance`, and compare equal if `identity` is.
    """

    name: str
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    horizon: int
    identity: Any
    """Hashable."""
    _dtypes: Any = None

    def start(self, key: Array) -> tuple[Any, Any]:
        """The first observation and state, as the library returns them."""
        raise NotImplementedError

    def advance(self, key: Array, state: Any, action: Array) -> JaxStep:
        """One step, as the library takes it."""
        raise NotImplementedError

    def episode_metrics(self, state: Any) -> dict[str, Any]:
        """The metrics of an episode with that last state."""
        return {}

    def reset(self, key: Array) -> tuple[Any, Any]:
        """The first observation and the state of an episode."""
        observation, state = self.start(key)
        if self._dtypes is not None:
            state = jax.tree.map(lambda x, dtype: jnp.asarray(x, dtype), state, self._dtypes)
        return observation, state

    def step(self, key: Array, state: Any, action: Array) -> JaxStep:
        """One step, with values of known types."""
        result = self.advance(key, state, action)
        return result._replace(
            state=jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), result.state, state),
            reward=jnp.asarray(result.reward, jnp.float32).reshape(()),
            terminated=jnp.asarray(result.terminated, bool).reshape(()),
            truncated=jnp.asarray(result.truncated, bool).reshape(()),
        )

    def checked(self) -> JaxModel:
        """The model itself, or an error if its functions do not fit together or cannot be compiled."""
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1:
            raise ValueError(f"{self.name}: horizon={self.horizon!r}: a whole number of at least 1 step is needed.")
        if self.horizon >= _ACTIONS:
            raise ValueError(f"{self.name}: horizon={self.horizon}: at most {_ACTIONS - 1} steps can be counted.")
        key = jax.eval_shape(lambda: jax.random.key(0))
        observation, state = _traced(self.name, "reset(key)", self.start, key)
        self._check_observation("reset", observation)
        action = jnp.zeros(self.action_space.shape or (), _canonical(self.action_space.dtype))
        result = _traced(self.name, "step(key, state, action)", self.advance, key, state, action)
        self._check_observation("step", result.observation)
        for what in ("reward", "terminated", "truncated"):
            size = math.prod(getattr(result, what).shape)
            if size != 1:
                raise ValueError(f"{self.name}: step returned {size} numbers as {what}. Return a scalar.")
        self._dtypes = _state_dtypes(self.name, state, result.state)
        metrics = _traced(self.name, "episode_metrics(state)", self.episode_metrics, result.state)
        if not isinstance(metrics, Mapping) or any(math.prod(value.shape) != 1 for value in metrics.values()):
            raise ValueError(f"{self.name}: episode_metrics(state) must return a dictionary of names and scalars.")
        return self

    def _check_observation(self, function: str, observation: Any) -> None:
        problem = _misfit(self.observation_space, observation)
        if problem:
            space = shown_space(self.observation_space)
            raise ValueError(f"{self.name}: {function} returned an observation {problem} that is not in {space}.")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self.identity == other.identity)

    def __hash__(self) -> int:
        return hash((type(self), self.identity))

    def __repr__(self) -> str:
        return f"<JAX environment {self.name}>"


def jax_model(env: Any) -> JaxModel | None:
    """The JAX model of an environment; None if it has none, or if a wrapper might change what it does."""
    while isinstance(env, gym.Wrapper):
        if not isinstance(env, TRANSPARENT_WRAPPERS):
            return None
        env = env.env
    model = getattr(env, "jax_model", None)
    return model if isinstance(model, JaxModel) else None


def reset_key(episode: Array) -> Array:
    """The key that the episode with the key `episode` is reset with."""
    return jax.random.fold_in(episode, 0)


def step_key(episode: Array, t: Any) -> Array:
    """The key of step t = 0, 1, ... of an episode."""
    return jax.random.fold_in(episode, t + 1)


def action_key(episode: Array, t: Any) -> Array:
    """The key of the policy's random numbers in step t, which the environment does not use."""
    return jax.random.fold_in(jax.random.fold_in(episode, _ACTIONS), t)


def _traced(name: str, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes that a function returns; an error on one line if JAX cannot trace it."""
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0].rstrip('.')}."
        hint = " Use jax.numpy, with jnp.where or jax.lax.cond in place of `if`." if "Tracer" in reason else ""
        raise ValueError(f"{name}: JAX cannot trace {what}: {reason}{hint}") from error


def _state_dtypes(name: str, first: Any, later: Any) -> Any:
    """The dtype of each part of a state: that after a step, if the one after a reset can be converted without loss."""
    structures: list[Any] = [jax.tree.structure(state) for state in (first, later)]
    if structures[0] != structures[1]:
        raise ValueError(f"{name}: the state after reset and after step have different structures. Return the same.")

    def dtype(path: Any, before: Any, after: Any) -> Any:
        part = f"state{jax.tree_util.keystr(path)}"
        if before.shape != after.shape:
            shapes = f"shape {before.shape} after reset and {after.shape} after step"
            raise ValueError(f"{name}: {part} has {shapes}. States must keep their shapes.")
        if jnp.issubdtype(before.dtype, jax.dtypes.prng_key):
            return after.dtype
        if jnp.promote_types(before.dtype, after.dtype) != after.dtype:
            raise ValueError(
                f"{name}: {part} is {before.dtype} after reset and {after.dtype} after step. Return the same dtype."
            )
        return after.dtype

    return jax.tree.map_with_path(dtype, first, later)


def _misfit(space: gym.Space[Any], observation: Any) -> str:
    """What is wrong with an observation of these shapes; "" if nothing is."""
    if isinstance(space, Dict):
        if not isinstance(observation, Mapping) or set(observation) != set(space):
            return f"of type {type(observation).__name__}"
        return next((found for name in space if (found := _misfit(space[name], observation[name]))), "")
    if isinstance(space, Tuple):
        if not isinstance(observation, tuple | list) or len(observation) != len(space):
            return f"of type {type(observation).__name__}"
        return next((found for own, x in zip(space, observation, strict=True) if (found := _misfit(own, x))), "")
    if not hasattr(observation, "shape"):
        return f"of type {type(observation).__name__}"
    if isinstance(space, Discrete | MultiDiscrete) and not jnp.issubdtype(observation.dtype, jnp.integer):
        return f"of dtype {observation.dtype}"
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary | Box) and observation.shape != space.shape:
        return f"of shape {observation.shape}"
    return ""


def _canonical(dtype: Any) -> Any:
    """The dtype with which JAX computes."""
    return jax.dtypes.canonicalize_dtype(dtype)
