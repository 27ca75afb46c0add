"""Environments that offer a faster simulator of themselves, for many episodes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from steadyrl.rollout import HARMLESS_WRAPPERS
from steadyrl.simulators.simulator import Simulator


class FastFace(NamedTuple):
    """Another simulator of the same environment with the same options."""

    engine: str
    """Its name: "envpool" or "mujoco"."""
    make: Callable[[int], Simulator]
    """From how many episodes it holds at once to the simulator. Raises the obstacle, if there is one."""
    obstacle: ImportError | ValueError | None = None
    """Why it cannot be used: a missing package, or an option that it cannot honour. None if it can."""


def fast_face(env: gym.Env[Any, Any]) -> FastFace | None:
    """The fast face of an environment; None if it has none, or wears a wrapper that might change what it does.

    An environment offers one by a method `fast_face(max_steps)`, where `max_steps` is the limit that it was made with,
    or None.
    """
    max_steps: int | None = None
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            # TimeLimits may be nested, and then the lowest counts.
            limit = env._max_episode_steps
            max_steps = limit if max_steps is None else min(max_steps, limit)
        elif not isinstance(env, HARMLESS_WRAPPERS):
            return None
        env = env.env
    offer = getattr(env, "fast_face", None)
    return None if offer is None else offer(max_steps)
