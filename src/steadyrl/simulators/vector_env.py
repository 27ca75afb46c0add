"""A user's own Gymnasium `VectorEnv` as a simulator, whatever it does when an episode ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from steadyrl.simulators.simulator import SlotError, Steps, row_of
from steadyrl.spaces import flat_rows, stackable


class VectorEnvs:
    """Slots are the sub-environments of a `VectorEnv`.

    It can only be stepped as a whole: where an episode is over before the others of its wave, the sub-environment goes
    on with one that does not count. These steps are counted in `idle_steps`. Some take one seed for all of their
    sub-environments: an episode then depends on the seeds of its whole wave.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.size, self.idle_steps = env.num_envs, 0
        self._env = env
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._shape, self._dtype = stackable(self.observation_space)
        self._one_seed = False
        self._actions: Any = None
        self._over = np.zeros(self.size, bool)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`; the sub-environments beyond the last seed start too, from seeds that follow it."""
        beyond = [int(seeds[-1]) + 1 + i for i in range(self.size - len(seeds))]
        try:
            observations = self._reset([*map(int, seeds), *beyond])
        except Exception as error:
            raise SlotError(None, f"reset raised {type(error).__name__}: {error}") from error
        self._actions = None
        self._over[:] = False
        return self._rows(observations, np.arange(len(seeds)))

    def _reset(self, seeds: list[int]) -> Any:
        if not self._one_seed:
            try:
                return self._env.reset(seed=seeds)[0]  # type: ignore[arg-type]
            except (TypeError, ValueError, gym.error.Error):
                self._one_seed = True  # All that `VectorEnv` itself asks for is one whole number.
        return self._env.reset(seed=int(np.random.SeedSequence(seeds).generate_state(1)[0]))[0]

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        if self._actions is None:  # Whoever has no action of its own repeats somebody's first.
            self._actions = np.repeat(actions[:1], self.size, axis=0)
        self._actions[slots] = actions
        try:
            if self._mode == AutoresetMode.DISABLED and self._over.any():
                self._env.reset(options={"reset_mask": self._over.copy()})
            observations, rewards, terminated, truncated, info = self._env.step(self._actions.copy())
        except Exception as error:
            raise SlotError(None, f"step raised {type(error).__name__}: {error}") from error
        self.idle_steps += self.size - len(slots)
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        self._over = terminated | truncated
        rows, facts = self._rows(observations, slots), info.get("facts", {})
        if self._mode == AutoresetMode.SAME_STEP and self._over[slots].any():
            facts = info.get("final_info", {}).get("facts", {})
            for row in np.flatnonzero(self._over[slots]):
                slot = int(slots[row])
                rows[row] = row_of(self.observation_space, self._shape, slot, info["final_obs"][slot])
        stated = {int(slot): _facts_of(facts, slot) for slot in slots[self._over[slots]]}
        return Steps(rows, np.asarray(rewards, np.float64)[slots], terminated[slots], truncated[slots], stated)

    def _rows(self, observations: Any, slots: Any) -> Any:
        """What was seen in some slots, as an array of its own."""
        rows = flat_rows(self.observation_space, observations)
        if rows.shape != (self.size, *self._shape):
            raise SlotError(None, f"observations of shape {rows.shape} for {self.size} of {self.observation_space}")
        return rows[slots].astype(self._dtype, copy=False)

    def close(self) -> None:
        """The environment is its owner's."""


def _facts_of(facts: dict[str, Any], slot: int) -> dict[str, float]:
    """What was stated of one episode: Gymnasium marks under `_name` in which sub-environments `name` was."""
    return {
        name: float(values[slot])
        for name, values in facts.items()
        if not name.startswith("_") and (f"_{name}" not in facts or facts[f"_{name}"][slot])
    }
