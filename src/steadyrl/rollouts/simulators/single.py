"""One Gymnasium environment as a simulator of one episode, with the environment's own observations."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.envs.episode_metrics import metrics_of
from steadyrl.envs.simulator import SlotError, StepResult


class SingleEnvSimulator:
    """For policies that are not agents of steadyrl: observations are passed unchanged, as an array of one object."""

    size, idle_steps = 1, 0

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._env = env

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        try:
            observation, _ = self._env.reset(seed=int(seeds[0]))
        except Exception as error:
            raise SlotError(0, f"reset raised {type(error).__name__}: {error}") from error
        return self._as_array(observation)

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        try:
            observation, given, terminated, truncated, info = self._env.step(actions[0])
            reward = float(given)
        except Exception as error:
            raise SlotError(0, f"step raised {type(error).__name__}: {error}") from error
        metrics = {0: metrics_of(info)} if terminated or truncated else {}
        ends = np.array([bool(terminated)]), np.array([bool(truncated)])
        return StepResult(self._as_array(observation), np.array([reward]), *ends, metrics)

    def close(self) -> None:
        """Does nothing: the environment belongs to the user."""

    def _as_array(self, observation: Any) -> Any:
        """[1]: a copy of a valid observation, because an environment may reuse the array for the next one."""
        space = self.observation_space
        if isinstance(space, gym.spaces.Box) and np.shape(observation) != space.shape:
            raise SlotError(0, f"observation of shape {np.shape(observation)} that is not in {space}")
        for values in _float_arrays(observation):
            for value in values[~np.isfinite(values)]:
                raise SlotError(0, f"observation {value}")
        array = np.empty(1, object)
        array[0] = copy.deepcopy(observation)
        return array


def _float_arrays(observation: Any) -> Iterator[Any]:
    """The arrays of floats in an observation, which may be a dictionary or a tuple of observations."""
    if isinstance(observation, Mapping | tuple):
        for part in observation.values() if isinstance(observation, Mapping) else observation:
            yield from _float_arrays(part)
    elif isinstance(observation, np.ndarray) and observation.dtype.kind == "f":
        yield observation
