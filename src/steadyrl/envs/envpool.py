"""Helpers for EnvPool's vector environments."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from steadyrl.envs.simulator import StepResult
from steadyrl.envs.spaces import flat_rows


def is_envpool(env: Any) -> bool:
    """Whether `env` is an EnvPool environment; EnvPool need not be installed."""
    module = sys.modules.get("envpool.python.envpool")
    return module is not None and isinstance(env, module.EnvPoolMixin)


def unsupported_pool(env: Any) -> ValueError | None:
    """The reason why whole episodes cannot be played in a pool; None if they can."""
    if env.is_async:
        return ValueError(
            f"EnvPool with batch_size={env.config['batch_size']} returns results of only the quickest of its "
            f"{env.num_envs} environments. Leave batch_size out."
        )
    if env.config.get("max_num_players", 1) > 1:
        return ValueError(
            f"EnvPool with {env.config['max_num_players']} players: only single-agent environments are supported."
        )
    return None


def step_subset(pool: Any, slots: Any, actions: Any) -> StepResult:
    """One step in the environments `slots` [k] of a pool, in ascending order."""
    observations, rewards, terminated, truncated, info = pool.step(actions, slots)
    order = np.argsort(info["env_id"])  # EnvPool returns rows in the order in which its threads finish.
    rows = flat_rows(pool.observation_space, observations)
    return StepResult(rows[order], rewards[order].astype(np.float64), terminated[order], truncated[order], {})
