"""A user's own Gymnasium `VectorEnv` as a simulator, whatever it does when an episode ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from steadyrl.simulators.simulator import Steps
from steadyrl.spaces import stackable


class VectorEnvs:
    """Slots are the sub-environments of a `VectorEnv`.

    It can only be stepped as a whole: where an episode is over before the others of its wave, the sub-environment goes
    on with one that does not count. These steps are counted in `idle_steps`.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.size, self.idle_steps = env.num_envs, 0
        self._env = env
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._actions: Any = None
        self._over = np.zeros(self.size, bool)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`; the sub-environments beyond the last seed start too, from seeds that follow it."""
        beyond = [int(seeds[-1]) + 1 + i for i in range(self.size - len(seeds))]
        observations, _ = self._env.reset(seed=[*map(int, seeds), *beyond])  # type: ignore[arg-type]
        self._actions = None
        self._over[:] = False
        return self._rows(observations, np.arange(len(seeds)))

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        if self._mode == AutoresetMode.DISABLED and self._over.any():
            self._env.reset(options={"reset_mask": self._over.copy()})
        if self._actions is None:  # Whoever has no action of its own repeats somebody's first.
            self._actions = np.repeat(actions[:1], self.size, axis=0)
        self._actions[slots] = actions
        observations, rewards, terminated, truncated, info = self._env.step(self._actions.copy())
        self.idle_steps += self.size - len(slots)
        self._over = terminated | truncated
        facts = info.get("facts", {})
        rows = self._rows(observations, slots)
        if self._mode == AutoresetMode.SAME_STEP and self._over[slots].any():
            facts = info.get("final_info", {}).get("facts", {})
            for row in np.flatnonzero(self._over[slots]):
                rows[row] = self._row(info["final_obs"][slots[row]])
        stated = {
            int(slot): {name: float(facts[name][slot]) for name in facts if not name.startswith("_")}
            for slot in slots[self._over[slots]]
        }
        return Steps(rows, np.asarray(rewards, np.float64)[slots], terminated[slots], truncated[slots], stated)

    def _rows(self, observations: Any, slots: Any) -> Any:
        """What was seen in some slots, as arrays of their own."""
        if isinstance(self.observation_space, gym.spaces.Dict):
            single = gym.vector.utils.iterate(self._env.observation_space, observations)
            return np.stack([self._row(one) for slot, one in enumerate(single) if slot in set(slots.tolist())])
        return np.asarray(observations)[slots]

    def _row(self, observation: Any) -> Any:
        shape, dtype = stackable(self.observation_space)
        if isinstance(self.observation_space, gym.spaces.Dict):
            observation = gym.spaces.flatten(self.observation_space, observation)
        return np.asarray(observation, dtype).reshape(shape)

    def close(self) -> None:
        """The environment is its owner's."""
