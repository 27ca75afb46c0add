"""Environments that offer a faster simulator of themselves, for many episodes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from steadyrl.envs.finite import TRANSPARENT_WRAPPERS
from steadyrl.envs.simulator import Simulator


class FastSimulator(NamedTuple):
    """Another simulator of the same environment with the same options."""

    engine: str
    """Its name: "envpool" or "mujoco"."""
    make: Callable[[int], Simulator]
    """`make(size)` creates the simulator of up to `size` episodes at once. Raises `unsupported` if that is set."""
    unsupported: ImportError | ValueError | None = None
    """The reason why it cannot be used, a missing package or an option that it does not implement; else None."""
    same_episodes: bool = True
    """Whether the environment itself plays the same episode, to the last bit, from the same seed and actions."""


def fast_simulator(env: gym.Env[Any, Any]) -> FastSimulator | None:
    """The fast simulator of an environment; None if it has none, or if a wrapper might change what it does.

    An environment offers one through a method `fast_simulator(max_steps)`, where `max_steps` is the time limit of its
    wrappers, or None.
    """
    max_steps: int | None = None
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            # TimeLimits may be nested, and then the lowest applies.
            limit = env._max_episode_steps
            max_steps = limit if max_steps is None else min(max_steps, limit)
        elif not isinstance(env, TRANSPARENT_WRAPPERS):
            return None
        env = env.env
    offer = getattr(env, "fast_simulator", None)
    return None if offer is None else offer(max_steps)
