"""What a user passes to an agent as `env`: the environment, how to create copies of it, and its spaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.vector import VectorEnv

from steadyrl.envs.resolve import EnvLike, resolve

AnyEnv = EnvLike | VectorEnv[Any, Any, Any]
"""A Gymnasium id, `module:factory`, an environment, a function that creates one, or a vector environment."""


class Source(NamedTuple):
    """Where episodes come from."""

    env: Any
    """A Gymnasium `Env` or `VectorEnv`; None for an agent whose environment could not be recreated."""
    another: Callable[[], gym.Env[Any, Any]] | None
    """Creates a copy of `env`; None if that is not possible."""

    @classmethod
    def of(cls, env: AnyEnv | Source, /, **options: Any) -> Source:
        """From what the user passed. An environment object may have been modified, so there are no copies of it."""
        if isinstance(env, Source):
            return env
        if isinstance(env, VectorEnv):
            return cls(env, None)
        resolved = resolve(env, **options)
        return cls(resolved, None if resolved is env else partial(resolve, env, **options))

    @property
    def spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """The observation space and action space of a single episode."""
        if isinstance(self.env, VectorEnv):
            return self.env.single_observation_space, self.env.single_action_space
        return self.env.observation_space, self.env.action_space
