"""EnvPool's vector environments, as users make them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrl.simulators.simulator import Steps
from steadyrl.spaces import flat_rows


def is_envpool(env: Any) -> bool:
    """Whether it was made by EnvPool, which need not be installed."""
    module = sys.modules.get("envpool.python.envpool")
    return module is not None and isinstance(env, module.EnvPoolMixin)


def obstacle(env: Any) -> ValueError | None:
    """Why whole episodes cannot be played in it, or None."""
    if env.is_async:
        return ValueError(
            f"EnvPool with batch_size={env.config['batch_size']} answers for the quickest of its "
            f"{env.num_envs} environments only. Leave batch_size out."
        )
    if env.config.get("max_num_players", 1) > 1:
        return ValueError(f"EnvPool with {env.config['max_num_players']} players: agents here play alone.")
    return None


class EnvPoolEnvs:
    """Slots are the environments of a pool; see `Simulator`.

    EnvPool takes seeds only when it is made, `envpool.make(..., seed=0)`, so those of the episodes say nothing about
    what happens in the environment: each environment of the pool goes on drawing from its own stream. A run comes out
    the same again if the pool is made anew with the same seed; an episode taken out of a run does not.
    """

    idle_steps = 0

    def __init__(self, env: Any) -> None:
        reason = obstacle(env)
        if reason is not None:
            raise reason
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.size = env.num_envs
        self._env = env

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`, but for the seeds."""
        observations, info = self._env.reset(np.arange(len(seeds), dtype=np.int32))
        return flat_rows(self.observation_space, observations)[np.argsort(info["env_id"])]

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        return step_some(self._env, slots, actions)

    def close(self) -> None:
        """The pool is its owner's."""


def step_some(pool: Any, slots: Any, actions: Any) -> Steps:
    """One step in some of a pool's environments, which are numbered by `slots`, in ascending order."""
    observations, rewards, terminated, truncated, info = pool.step(actions, slots)
    order = np.argsort(info["env_id"])  # EnvPool answers in the order in which its threads finish.
    rows = flat_rows(pool.observation_space, observations)
    return Steps(rows[order], rewards[order].astype(np.float64), terminated[order], truncated[order], {})
