"""What a user passes to an agent as `env`: the environment, how to make more of it, and the spaces of an episode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.vector import VectorEnv

from steadyrl.envs.resolve import EnvLike, resolve

AnyEnv = EnvLike | VectorEnv[Any, Any, Any]
"""A Gymnasium id, `module:factory`, an environment, a function that makes one, or a vector environment."""


class Source(NamedTuple):
    """Where episodes come from."""

    env: Any
    """A Gymnasium `Env` or `VectorEnv`; None for an agent whose environment could not be made again."""
    another: Callable[[], gym.Env[Any, Any]] | None
    """Makes another like `env`; None where only this one is there."""

    @classmethod
    def of(cls, env: AnyEnv | Source, **options: Any) -> Source:
        """From what the user passed. An environment that was made by somebody else may have been changed: no copies."""
        if isinstance(env, Source):
            return env
        if isinstance(env, VectorEnv):
            return cls(env, None)
        made = resolve(env, **options)
        return cls(made, None if made is env else partial(resolve, env, **options))

    @property
    def spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """What one episode sees, and what it does."""
        if isinstance(self.env, VectorEnv):
            return self.env.single_observation_space, self.env.single_action_space
        return self.env.observation_space, self.env.action_space
