"""From what a user passes as `env` (an id, an environment or a factory) to a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from steadyrl.naming import unknown

EnvLike = str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]]


def resolve(env: EnvLike, **options: Any) -> gym.Env[Any, Any]:
    """The environment that `env` names, is, or makes. `options` go to `gymnasium.make` and need an id."""
    if isinstance(env, str):
        return _make(env, options)
    if options:
        raise ValueError(f"environment options {sorted(options)} need an environment id; set them on {env} itself.")
    if isinstance(env, gym.Env):
        return env
    if callable(env):
        made = env()
        if isinstance(made, gym.Env):
            return made
        raise TypeError(f"the environment factory returned {type(made).__name__}, not a gymnasium.Env.")
    raise TypeError(f"env is a {type(env).__name__}: pass a Gymnasium id, an Env, or a function that makes one.")


def _make(name: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    import steadyrl.envs  # noqa: F401  (registers steadyrl/...)

    try:
        return gym.make(name, **options)
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound, gym.error.VersionNotFound):
        raise ValueError(unknown("environment", name, gym.registry)) from None
    except TypeError as error:
        if not options:
            raise
        raise ValueError(f"environment {name} does not take these options: {error}") from error
