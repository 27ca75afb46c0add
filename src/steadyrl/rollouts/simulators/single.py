"""One Gymnasium environment as a simulator of one episode, with the environment's own observations."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.base.shown import shown
from steadyrl.envs.simulator import SlotError, StepResult
from steadyrl.rollouts.simulators.calls import reset_env, step_env
from steadyrl.rollouts.simulators.masks import ActionMasks

_NUMBERS = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""Spaces of arrays or single numbers."""


class SingleEnvSimulator:
    """For policies that are not agents of steadyrl: observations are passed unchanged, as an array of one object."""

    size, idle_steps = 1, 0

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._env, self._masks = env, ActionMasks(env.action_space)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        observation, info = reset_env(self._env, 0, seeds[0], self._as_array)
        self._masks.after_reset(0, 1, self._env, info)
        return observation

    @property
    def action_masks(self) -> Any:
        """See `Simulator`."""
        return self._masks.current

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        observation, reward, terminated, truncated, at_end, info = step_env(self._env, 0, actions[0], self._as_array)
        self._masks.after_step(0, info)
        metrics = {0: at_end} if terminated or truncated else {}
        ends = np.array([terminated]), np.array([truncated])
        return StepResult(observation, np.array([reward]), *ends, metrics)

    def close(self) -> None:
        """Does nothing: the environment belongs to the user."""

    def _as_array(self, slot: int, observation: Any) -> Any:
        """[1]: a copy of a valid observation, because an environment may reuse the array for the next one."""
        _check_structure(self.observation_space, observation)
        for values in _float_arrays(observation):
            for value in values[~np.isfinite(values)]:
                raise SlotError(0, f"observation {value}")
        array = np.empty(1, object)
        array[0] = copy.deepcopy(observation)
        return array


def _check_structure(space: gym.Space[Any], observation: Any) -> None:
    """Refuse an observation of another kind than the space's; bounds are not looked at."""
    fits = True
    if isinstance(space, gym.spaces.Dict):
        fits = isinstance(observation, Mapping) and all(name in observation for name in space)
        for name, part in space.items() if fits else ():
            _check_structure(part, observation[name])
    elif isinstance(space, gym.spaces.Tuple):
        fits = isinstance(observation, tuple | list) and len(observation) == len(space)
        for part, own in zip(space.spaces, observation, strict=True) if fits else ():
            _check_structure(part, own)
    elif isinstance(space, _NUMBERS):
        try:
            values = np.asarray(observation)
        except Exception as error:
            raise SlotError(0, f"observation {shown(observation)} that is not in {space}") from error
        if values.shape != space.shape:
            raise SlotError(0, f"observation of shape {values.shape} that is not in {space}")
        fits = values.dtype.kind in "biuf"
    if not fits:
        raise SlotError(0, f"observation {shown(observation)} that is not in {space}")


def _float_arrays(observation: Any) -> Iterator[Any]:
    """The arrays of floats in an observation, which may be a dictionary or a tuple of observations."""
    if isinstance(observation, Mapping | tuple):
        for part in observation.values() if isinstance(observation, Mapping) else observation:
            yield from _float_arrays(part)
    elif isinstance(observation, np.ndarray) and observation.dtype.kind == "f":
        yield observation
