"""A JAX environment as a Gymnasium environment, for everything that takes single steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from jax import Array

from steadyrl.envs.episode_metrics import metrics_info
from steadyrl.envs.jax_env import JaxModel, JaxStep, reset_key, step_key
from steadyrl.envs.jax_libraries import as_jax_model


class JaxEnvironment(gym.Env[Any, Any]):
    """The Gymnasium interface of a `JaxModel`: one compiled call for each step.

    The episode of a seed is the same here and in compiled programs: random numbers come from the seed and the number
    of the step alone.
    """

    def __init__(self, model: JaxModel) -> None:
        self.jax_model = model
        self.observation_space, self.action_space = model.observation_space, model.action_space
        self._t = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; `options={"key": key}` starts that of a JAX key."""
        super().reset(seed=seed)
        key = (options or {}).get("key")
        if key is None:
            key = jax.random.key(int(self.np_random.integers(2**32)) if seed is None else seed)
        self._key, self._t = key, 0
        observation, self._state = _reset(self.jax_model, key)
        return self._observed(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, truncated at the horizon."""
        model = self.jax_model
        result = _step(model, self._key, self._t, self._state, np.asarray(action, model.action_space.dtype))
        self._state, self._t = result.state, self._t + 1
        terminated = bool(result.terminated)
        truncated = bool(result.truncated) or self._t >= model.horizon
        info = {}
        if terminated or truncated:
            metrics = model.episode_metrics(self._state)
            info = metrics_info({name: float(value) for name, value in metrics.items()}) if metrics else {}
        return self._observed(result.observation), float(result.reward), terminated, truncated and not terminated, info

    def _observed(self, observation: Any) -> Any:
        return _in_space(self.observation_space, observation)

    def __str__(self) -> str:
        return f"<JaxEnvironment<{self.jax_model.name}>>"


def from_jax(env: Any, horizon: int | None = None) -> JaxEnvironment:
    """A JAX environment with another `horizon` than its own, which is at most the one of gymnax's parameters.

    Agents, `evaluate` and the rest take JAX environments as they are; this is for the horizon, and for single steps.
    """
    model = as_jax_model(env, horizon)
    if model is None:
        raise TypeError(
            f"env is a {type(env).__name__}: pass an environment of gymnax or Brax, or your own with reset(key), "
            "step(key, state, action), observation_space, action_space and horizon."
        )
    return JaxEnvironment(model)


def _in_space(space: gym.Space[Any], observation: Any) -> Any:
    """In NumPy, with the space's dtype."""
    if isinstance(space, gym.spaces.Dict):
        return {name: _in_space(part, observation[name]) for name, part in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_in_space(part, own) for part, own in zip(space.spaces, observation, strict=True))
    return np.asarray(observation).astype(space.dtype)


@partial(jax.jit, static_argnames="model")
def _reset(model: JaxModel, key: Array) -> tuple[Any, Any]:
    return model.reset(reset_key(key))


@partial(jax.jit, static_argnames="model")
def _step(model: JaxModel, key: Array, t: Array, state: Any, action: Array) -> JaxStep:
    return model.step(step_key(key, t), state, action)
