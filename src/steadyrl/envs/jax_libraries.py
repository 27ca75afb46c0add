"""JAX environments of gymnax, of Brax and MuJoCo Playground, and one's own, each as a `JaxModel`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from jax import Array

from steadyrl.base.names import unknown
from steadyrl.base.shown import shown
from steadyrl.envs.factory_path import creation_error
from steadyrl.envs.jax_env import JaxModel, JaxStep

GYMNAX = "gymnax:"
"""How the names of gymnax environments begin."""
INSTALL_GYMNAX = "pip install flax seaborn six; pip install --no-deps gymnax"
"""Without its requirements: they exclude the version of Gymnasium that we need, though gymnax works with it."""
BRAX_HORIZON = 1000
"""Steps of an episode in Brax, unless an environment says otherwise; its own default."""


class OwnModel(JaxModel):
    """An environment with the methods of `JaxEnv`."""

    def __init__(self, env: Any, horizon: int | None = None) -> None:
        self._env = env
        self.name = str(getattr(env, "name", type(env).__name__))
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.horizon = env.horizon if horizon is None else horizon
        self.identity = (_hashable(env), self.horizon)
        if not isinstance(self.observation_space, gym.Space) or not isinstance(self.action_space, gym.Space):
            raise TypeError(f"{self.name}: observation_space and action_space must be spaces of Gymnasium.")

    def start(self, key: Array) -> tuple[Any, Any]:
        """See `JaxModel`."""
        observation, state = self._env.reset(key)
        return observation, state

    def advance(self, key: Array, state: Any, action: Array) -> JaxStep:
        """See `JaxModel`."""
        observation, state, reward, terminated, *truncated = self._env.step(key, state, action)
        return JaxStep(observation, state, reward, terminated, *(truncated or [jnp.bool(False)]))

    def episode_metrics(self, state: Any) -> dict[str, Any]:
        """See `JaxModel`."""
        metrics = getattr(self._env, "episode_metrics", None)
        return {} if metrics is None else metrics(state)


class GymnaxModel(JaxModel):
    """An environment of gymnax 1.x with its parameters: `step_env`, because its `step` starts episodes anew."""

    def __init__(self, env: Any, params: Any = None, horizon: int | None = None) -> None:
        self._env, self._params = env, env.default_params if params is None else params
        self.name = str(getattr(env, "name", type(env).__name__))
        if not hasattr(env, "is_truncated"):  # Before 1.0 a time limit looked like a terminal state.
            raise TypeError(f"{self.name} is an environment of gymnax before 1.0. Upgrade: {INSTALL_GYMNAX}.")
        self.observation_space = _space(env.observation_space(self._params))
        self.action_space = _space(env.action_space(self._params))
        limit = int(self._params.max_steps_in_episode)
        self.horizon = limit if horizon is None else min(horizon, limit)
        numbers = [np.asarray(x).tobytes() for x in jax.tree.leaves(self._params)]
        attributes = (type(env), tuple(sorted(vars(env).items())))  # Objects of a class that are made alike.
        same = attributes if _is_hashable(attributes) else env
        self.identity = (same, jax.tree.structure(self._params), tuple(numbers), self.horizon)

    def start(self, key: Array) -> tuple[Any, Any]:
        """See `JaxModel`."""
        observation, state = self._env.reset_env(key, self._params)
        return observation, state

    def advance(self, key: Array, state: Any, action: Array) -> JaxStep:
        """See `JaxModel`."""
        observation, state, reward, terminated, _ = self._env.step_env(key, state, action, self._params)
        return JaxStep(observation, state, reward, terminated, self._env.is_truncated(state, self._params))


class BraxModel(JaxModel):
    """An environment of Brax or MuJoCo Playground: `reset(key)` and `step(state, action)` return a whole State."""

    def __init__(self, env: Any, horizon: int | None = None) -> None:
        self._env = env
        self.name = type(getattr(env, "unwrapped", env)).__name__
        for wrapper in _chain(env):
            if "AutoReset" in type(wrapper).__name__ or "Vmap" in type(wrapper).__name__:
                raise TypeError(
                    f"{self.name} is wrapped in {type(wrapper).__name__}, but episodes are played whole and one by "
                    "one here. Pass the environment without it, such as env.unwrapped."
                )
        self.horizon = _brax_horizon(env) if horizon is None else horizon
        first = jax.eval_shape(env.reset, jax.eval_shape(lambda: jax.random.key(0)))
        self.observation_space = _unbounded(first.obs)
        self.action_space = Box(-1.0, 1.0, (int(env.action_size),), np.float32)
        self.identity = (_hashable(env), self.horizon)

    def start(self, key: Array) -> tuple[Any, Any]:
        """See `JaxModel`."""
        state = self._env.reset(key)
        return state.obs, state

    def advance(self, key: Array, state: Any, action: Array) -> JaxStep:
        """See `JaxModel`; `key` is not used: a State has one of its own, if it needs it."""
        state = self._env.step(state, action)
        # Where an EpisodeWrapper reports a time limit, `done` includes it.
        info = state.info if isinstance(state.info, Mapping) else {}
        truncated = jnp.asarray(info.get("truncation", 0.0))
        return JaxStep(state.obs, state, state.reward, (state.done > 0) & (truncated == 0), truncated > 0)


def as_jax_model(env: Any, horizon: int | None = None) -> JaxModel | None:
    """The model of a JAX environment, or of gymnax's pair (environment, parameters); None for anything else."""
    params = None
    if isinstance(env, tuple) and len(env) == 2 and hasattr(env[0], "step_env"):
        env, params = env
    if isinstance(env, gym.Env | gym.vector.VectorEnv | type):
        return None
    if hasattr(env, "step_env") and hasattr(env, "reset_env"):
        return GymnaxModel(env, params, horizon).checked()
    if not callable(getattr(env, "reset", None)) or not callable(getattr(env, "step", None)):
        return None
    if hasattr(env, "observation_size") and hasattr(env, "action_size"):
        return BraxModel(env, horizon).checked()
    if all(hasattr(env, name) for name in ("observation_space", "action_space", "horizon")):
        return OwnModel(env, horizon).checked()
    return None


def make_gymnax(name: str, options: Mapping[str, Any]) -> JaxModel:
    """The environment `gymnax:ID`; `options` are parameters of it, such as max_steps_in_episode, or of its class."""
    try:
        import gymnax
    except ModuleNotFoundError as error:
        remedy = f"{name} needs gymnax and what it imports ({error.name} is missing): {INSTALL_GYMNAX}"
        raise ModuleNotFoundError(remedy) from error
    identifier = name.removeprefix(GYMNAX)
    if identifier not in gymnax.registered_envs:
        problem = unknown("gymnax environment", identifier, gymnax.registered_envs)
        known = "" if "Did you mean" in problem else f" gymnax has {', '.join(sorted(gymnax.registered_envs))}."
        raise ValueError(problem + known)
    try:
        defaults = gymnax.make(identifier)[1]
    except Exception as error:  # Such as one that downloads images.
        raise ValueError(creation_error(name, None, {}, error)) from error
    parameters = {field.name for field in dataclasses.fields(defaults)}
    for option in sorted(parameters & set(options)):
        _check_parameter(name, option, options[option], getattr(defaults, option))
    try:
        env, params = gymnax.make(identifier, **{k: v for k, v in options.items() if k not in parameters})
    except TypeError:
        wrong = next(option for option in options if option not in parameters)
        raise ValueError(f"environment {name}: {unknown('option', wrong, sorted(parameters))}") from None
    params = dataclasses.replace(params, **{k: v for k, v in options.items() if k in parameters})
    return GymnaxModel(env, params).checked()


def _check_parameter(name: str, option: str, value: Any, default: Any) -> None:
    """An error for a parameter that is no number where its default is one."""
    if not isinstance(default, int | float):
        return
    needed = "a whole number" if isinstance(default, int) and not isinstance(default, bool) else "a number"
    if isinstance(value, str | list | dict) or value is None or (needed == "a whole number" and value % 1):
        raise ValueError(f"environment {name}: option {option}={shown(value)}: {needed} is needed, such as {default}.")


def _space(space: Any) -> gym.Space[Any]:
    """A space of gymnax as Gymnasium's."""
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if hasattr(space, "low"):
        dtype = np.dtype(space.dtype)
        low, high = (np.broadcast_to(np.asarray(x, dtype), space.shape) for x in (space.low, space.high))
        return Box(low, high, tuple(space.shape), dtype.type)
    if isinstance(getattr(space, "spaces", None), Mapping):
        return Dict({name: _space(part) for name, part in space.spaces.items()})
    raise ValueError(f"{space} of gymnax is not supported: it must be Discrete, Box or Dict.")


def _unbounded(observation: Any) -> gym.Space[Any]:
    """A space of any numbers, in the shapes of an observation."""
    if isinstance(observation, Mapping):
        return Dict({name: _unbounded(part) for name, part in observation.items()})
    return Box(-np.inf, np.inf, observation.shape, np.float32)


def _brax_horizon(env: Any) -> int:
    """Of an EpisodeWrapper, or of the configuration of a Playground environment."""
    for layer in _chain(env):
        for holder in (layer, getattr(layer, "_config", None)):
            length = getattr(holder, "episode_length", None)
            if isinstance(length, int | np.integer):
                return int(length)
    return BRAX_HORIZON


def _chain(env: Any) -> list[Any]:
    """An environment and those that it wraps."""
    chain = [env]
    while "env" in vars(chain[-1]):
        chain.append(chain[-1].env)
    return chain


def _hashable(env: Any) -> Any:
    """The environment, which may define equality; or what stands for this very object."""
    return env if _is_hashable(env) else _Identity(env)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class _Identity:
    """Equal for the same object alone."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other._env is self._env

    def __hash__(self) -> int:
        return id(self._env)
