"""An EnvPool environment passed by the user, as a simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrl.envs.envpool import step_subset, unsupported_pool
from steadyrl.envs.simulator import StepResult
from steadyrl.envs.spaces import flat_rows
from steadyrl.rollouts.simulators.calls import environment_errors


class EnvPoolSimulator:
    """Slots are the environments of a pool; see `Simulator`.

    EnvPool accepts seeds only at creation, `envpool.make(..., seed=0)`, so the seeds of episodes have no effect: each
    environment of the pool has one random stream for all of its episodes. A run is reproducible if the pool is created
    again with the same seed; a single episode is not.
    """

    idle_steps = 0

    def __init__(self, env: Any) -> None:
        reason = unsupported_pool(env)
        if reason is not None:
            raise reason
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.size = env.num_envs
        self._env = env

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`; the seeds have no effect."""
        with environment_errors(None, "reset"):
            observations, info = self._env.reset(np.arange(len(seeds), dtype=np.int32))
        return flat_rows(self.observation_space, observations)[np.argsort(info["env_id"])]

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        with environment_errors(None, "step"):
            return step_subset(self._env, slots, actions)

    def close(self) -> None:
        """Does nothing: the pool belongs to the user."""
