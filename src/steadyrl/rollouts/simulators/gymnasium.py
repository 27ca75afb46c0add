"""Gymnasium environments as a simulator, one per slot, stepped one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.envs.simulator import StepResult, row_of
from steadyrl.envs.spaces import stackable
from steadyrl.rollouts.simulators.calls import reset_env, step_env
from steadyrl.rollouts.simulators.masks import ActionMasks


class GymnasiumSimulator:
    """Slots are environments: the one passed in, and up to `size - 1` others created by `another`."""

    idle_steps = 0

    def __init__(self, env: gym.Env[Any, Any], another: Callable[[], gym.Env[Any, Any]] | None, size: int) -> None:
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.size = size if another else 1
        self._envs, self._another = [env], another
        self._shape, self._dtype = stackable(env.observation_space)
        self._masks = ActionMasks(env.action_space)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        while len(self._envs) < len(seeds):
            assert self._another is not None, "the size is 1"
            new = self._another()
            if any(new.unwrapped is env.unwrapped for env in self._envs):
                raise ValueError(
                    f"the environment factory returned the same {new} twice, but episodes that are played at the same "
                    "time need separate environments. Create a new one each time, or pass the environment itself."
                )
            self._envs.append(new)
        observations = np.empty((len(seeds), *self._shape), self._dtype)
        for slot, seed in enumerate(seeds):
            observations[slot], info = reset_env(self._envs[slot], slot, seed, self._row)
            self._masks.after_reset(slot, len(seeds), self._envs[slot], info)
        return observations

    @property
    def action_masks(self) -> Any:
        """See `Simulator`."""
        return self._masks.current

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        k = len(slots)
        observations = np.empty((k, *self._shape), self._dtype)
        rewards, terminated, truncated = np.empty(k), np.empty(k, bool), np.empty(k, bool)
        metrics = {}
        for row, slot in enumerate(slots.tolist()):
            observations[row], rewards[row], terminated[row], truncated[row], at_end, info = step_env(
                self._envs[slot], slot, actions[row], self._row
            )
            self._masks.after_step(slot, info)
            if terminated[row] or truncated[row]:
                metrics[slot] = at_end
        return StepResult(observations, rewards, terminated, truncated, metrics)

    def _row(self, slot: int, observation: Any) -> Any:
        return row_of(self.observation_space, self._shape, self._dtype, slot, observation)

    def close(self) -> None:
        """Close the environments that were created here; the one passed in belongs to the user."""
        for env in self._envs[1:]:
            env.close()
        del self._envs[1:]
