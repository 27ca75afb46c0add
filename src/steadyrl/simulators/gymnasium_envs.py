"""Gymnasium environments, each with an episode of its own, stepped in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.simulators.simulator import SlotError, Steps, row_of
from steadyrl.spaces import stackable


class GymnasiumEnvs:
    """Slots are environments: the one that is given, and up to `size - 1` others that `another` makes."""

    idle_steps = 0

    def __init__(self, env: gym.Env[Any, Any], another: Callable[[], gym.Env[Any, Any]] | None, size: int) -> None:
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.size = size if another else 1
        self._envs, self._another = [env], another
        self._shape, self._dtype = stackable(env.observation_space)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        while len(self._envs) < len(seeds):
            assert self._another is not None, "there is room for one episode"
            made = self._another()
            if any(made.unwrapped is env.unwrapped for env in self._envs):
                raise ValueError(
                    f"the function that makes the environment returned the same {made} twice: episodes side by side "
                    "would disturb each other. Make a new one each time, or pass the environment itself."
                )
            self._envs.append(made)
        observations = np.empty((len(seeds), *self._shape), self._dtype)
        for slot, seed in enumerate(seeds):
            try:
                observation, _ = self._envs[slot].reset(seed=int(seed))
            except Exception as error:
                raise SlotError(slot, f"reset raised {type(error).__name__}: {error}") from error
            observations[slot] = row_of(self.observation_space, self._shape, slot, observation)
        return observations

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        k = len(slots)
        observations = np.empty((k, *self._shape), self._dtype)
        rewards, terminated, truncated = np.empty(k), np.empty(k, bool), np.empty(k, bool)
        facts = {}
        for row, slot in enumerate(slots.tolist()):
            try:
                observation, rewards[row], terminated[row], truncated[row], info = self._envs[slot].step(actions[row])
            except Exception as error:
                raise SlotError(slot, f"step raised {type(error).__name__}: {error}") from error
            observations[row] = row_of(self.observation_space, self._shape, slot, observation)
            if terminated[row] or truncated[row]:
                facts[slot] = dict(info.get("facts", {}))
        return Steps(observations, rewards, terminated, truncated, facts)

    def close(self) -> None:
        """Close the environments that were made here; the one that was given is its owner's."""
        for env in self._envs[1:]:
            env.close()
        del self._envs[1:]
