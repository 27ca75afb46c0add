"""Wrappers whose running statistics would be lost: an agent is evaluated in an environment that is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import vector

_OBSERVATIONS = (gym.wrappers.NormalizeObservation, vector.NormalizeObservation)
_REWARDS = (gym.wrappers.NormalizeReward, vector.NormalizeReward)


def refuse_running_statistics(env: Any) -> None:
    """An error for an environment to train in that normalizes observations or rewards by what it has seen so far."""
    inner = env.unwrapped if isinstance(env, gym.vector.VectorEnv) else None
    if isinstance(inner, gym.vector.AsyncVectorEnv):  # Its environments are in other processes: ask them.
        for attribute in ("obs_rms", "return_rms"):
            if any(inner.call("has_wrapper_attr", attribute)):
                raise ValueError(
                    "NormalizeObservation or NormalizeReward in the vector environment: their running statistics are "
                    "not saved with the agent. Remove the wrapper, and set normalise_observations=True instead."
                )
    for wrapper in wrappers_of(env):
        if isinstance(wrapper, _OBSERVATIONS):
            raise ValueError(
                f"{type(wrapper).__name__}: its running mean and variance are not saved with the agent, so that it "
                "would be evaluated with others. Remove the wrapper, and set normalise_observations=True instead."
            )
        if isinstance(wrapper, _REWARDS):
            raise ValueError(
                f"{type(wrapper).__name__}: risk is that of the environment's own returns, and scaled by what was seen "
                "so far they mean something else in each episode. Remove the wrapper; to scale rewards, use "
                "gymnasium.wrappers.TransformReward."
            )


def running_statistics(env: Any) -> str | None:
    """The name of a wrapper that normalizes by what it has seen so far; None if there is none."""
    found = (type(wrapper).__name__ for wrapper in wrappers_of(env) if isinstance(wrapper, _OBSERVATIONS + _REWARDS))
    return next(found, None)


def wrappers_of(env: Any) -> Iterator[Any]:
    """All wrappers of an environment, and of the environments of a vector environment that are known here."""
    while isinstance(env, gym.Wrapper | gym.vector.VectorWrapper):
        yield env
        env = env.env
    for part in getattr(env, "envs", ()) if isinstance(env, gym.vector.SyncVectorEnv) else ():
        yield from wrappers_of(part)
