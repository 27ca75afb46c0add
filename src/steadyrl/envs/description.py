"""Environments as plain data: the id and options from which they can be recreated."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from steadyrl.envs.factory_path import origin_of
from steadyrl.envs.source import Source


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
    # A file must not choose the code to run, so a `module:factory` that it names is not called.
    if described is None or ":" in described["id"]:
        return Source(None, None)
    try:
        return Source.of(described["id"], **described["options"])
    except (ValueError, gym.error.Error, ImportError):
        return Source(None, None)  # The policy can still be used; `learn` reports what is missing.
