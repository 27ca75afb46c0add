"""Environments that are finite Markov decision processes known in full, so that training can be compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym

from steadyrl.exact.mdp import FiniteMDP

EpisodeMetrics = Callable[[Any, Any], dict[str, Any]]
"""`metrics(visits [..., S * A], ended [...]) -> name -> [...]`: metrics of whole episodes; hashable, JAX-traceable."""

TRANSPARENT_WRAPPERS = (gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker)
"""Wrappers that `gymnasium.make` adds and that do not change what an environment does."""


class FiniteModel(Protocol):
    """The model that an environment exposes as its attribute `finite_model`. Equal models are the same environment."""

    @property
    def mdp(self) -> FiniteMDP:
        """The process."""
        ...

    @property
    def metrics(self) -> EpisodeMetrics:
        """The metrics of its episodes."""
        ...


def replays_outcomes(env: gym.Env[Any, Any]) -> bool:
    """Whether `env.reset(options={"outcomes": [k, ...]})` replays an episode of its finite model."""
    return bool(getattr(env.unwrapped, "replays_outcomes", False))


def finite_model(env: Any) -> FiniteModel | None:
    """The finite model of an environment; None if it has none, or if a wrapper might change what it does."""
    while isinstance(env, gym.Wrapper):
        if not isinstance(env, TRANSPARENT_WRAPPERS):
            return None
        env = env.env
    return getattr(env, "finite_model", None)
