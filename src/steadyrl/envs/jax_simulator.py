"""Many episodes of a JAX environment side by side, with actions from outside: a compiled call for each step of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.envs.jax_env import JaxModel, JaxStep, reset_key, step_key
from steadyrl.envs.simulator import StepResult
from steadyrl.envs.spaces import flat_rows


class JaxSimulator:
    """A `Simulator`; the episode of a seed is that of `JaxEnvironment`. Slots whose episode is over are stepped on."""

    def __init__(self, model: JaxModel, size: int) -> None:
        self.observation_space, self.action_space = model.observation_space, model.action_space
        self.size, self.idle_steps = size, 0
        self._model = model

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        self._count, self._t = len(seeds), 0
        self._keys = episode_keys([*seeds, *[seeds[-1]] * (self.size - len(seeds))])
        observations, self._state = _reset(self._model, self._keys)
        return self._rows(observations, np.arange(self._count))

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        full = np.zeros((self.size, *actions.shape[1:]), actions.dtype)
        full[slots] = actions
        result = _step(self._model, self._keys, self._t, self._state, full)
        self._t, self._state = self._t + 1, result.state
        self.idle_steps += self.size - len(slots)
        terminated = np.asarray(result.terminated)[slots]
        truncated = (np.asarray(result.truncated)[slots] | (self._t >= self._model.horizon)) & ~terminated
        rewards = np.asarray(result.reward, np.float64)[slots]
        metrics: dict[int, dict[str, float]] = {}
        if (terminated | truncated).any():
            of_all = {name: np.asarray(x) for name, x in jax.vmap(self._model.episode_metrics)(self._state).items()}
            metrics = {s: {name: float(x[s]) for name, x in of_all.items()} for s in slots[terminated | truncated]}
        return StepResult(self._rows(result.observation, slots), rewards, terminated, truncated, metrics)

    def _rows(self, observations: Any, slots: Any) -> Any:
        return flat_rows(self.observation_space, jax.tree.map(np.asarray, observations))[slots]

    def close(self) -> None:
        """There is nothing to release."""


def episode_keys(seeds: Sequence[int]) -> Array:
    """The keys of the episodes that begin from seeds below 2^32."""
    keys: Array = jax.vmap(jax.random.key)(jnp.asarray(np.asarray(seeds, np.uint32)))
    return keys


@partial(jax.jit, static_argnames="model")
def _reset(model: JaxModel, keys: Array) -> tuple[Any, Any]:
    return jax.vmap(lambda key: model.reset(reset_key(key)))(keys)


@partial(jax.jit, static_argnames="model")
def _step(model: JaxModel, keys: Array, t: Array, state: Any, actions: Array) -> JaxStep:
    return jax.vmap(lambda key, state, action: model.step(step_key(key, t), state, action))(keys, state, actions)
