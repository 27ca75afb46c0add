"""Environments as plain data: the id and options from which they can be recreated."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from steadyrl.envs.factory_path import origin_of
from steadyrl.envs.jax_libraries import GYMNAX
from steadyrl.envs.source import Source

_SHOWN = "render_mode"
"""The option that only concerns showing; "human" ends the process where there is no display."""
_LOADERS = ("GymV21Environment", "GymV26Environment")
"""Gymnasium's ids that load an environment of another library by a name in their options."""


def describe_env(env: Any) -> dict[str, Any] | None:
    """The id and options that recreate an environment; None if it was not made from an id, or was wrapped since."""
    if isinstance(env, VectorEnv) or not isinstance(env, gym.Env):  # EnvPool's are both.
        return None
    described = origin_of(env)
    if described is None:
        if env.spec is None or env.spec.additional_wrappers:
            return None
        options = dict(env.spec.kwargs)
        if env.spec.max_episode_steps != gym.spec(env.spec.id).max_episode_steps:
            options["max_episode_steps"] = env.spec.max_episode_steps
        described = {"id": env.spec.id, "options": options}
    try:
        return dict(json.loads(json.dumps(described)))
    except TypeError:  # An option that is not plain data: only the user can recreate it.
        return None


def source_from(described: dict[str, Any] | None) -> Source:
    """The environment that a file describes; an empty source if it cannot be created here."""
    if described is None:
        return Source(None, None)
    try:
        name, options = trusted(described)
        return Source.of(name, **options)
    except (ValueError, gym.error.Error, ImportError, PermissionError):
        return Source(None, None)  # The policy can still be used; `learn` reports what is missing.


def names_code(name: str) -> bool:
    """Whether an environment is named by its module, rather than by an id that an installed package has registered."""
    return ":" in name and not name.startswith(GYMNAX)


def trusted(described: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id and options of an environment that a file describes; a `PermissionError` if it would choose code to run.

    Only what installed packages have registered is made from a file, and nothing is shown because a file says so.
    """
    name, options = described["id"], described["options"] or {}
    if names_code(name):
        raise PermissionError(f"its environment is {name}, code that a file must not choose.")
    if name.startswith(_LOADERS):
        raise PermissionError(f"its environment is {name}, which imports what its options name.")
    return name, {key: value for key, value in options.items() if key != _SHOWN}
