"""Whole episodes as arrays, and how they are played one after the other by whoever can act.

Agents fill the same arrays in other ways too: many episodes side by side (`collector`), or compiled (`rollout`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

Actor = Callable[[Any, bool], Any]
"""`act(observation, episode_start) -> action`: how a policy meets an environment."""


LONGEST = 1_000_000
"""Steps after which an episode that is played in turn counts as endless."""


class FaultyEnvironmentError(ValueError):
    """The environment did what no environment may do."""


class Episodes(NamedTuple):
    """n whole episodes, padded to a common length T. Arrays are NumPy's or JAX's."""

    observations: Any
    """[n, T, ...]: what the agent saw before each step."""
    actions: Any
    """[n, T, ...]: what it did."""
    rewards: Any
    """[n, T]: what it was paid; 0 in the padding."""
    mask: Any
    """[n, T]: 1 for a step that happened, 0 for padding."""
    last_observations: Any
    """[n, ...]: what the agent saw after the last step."""
    terminated: Any
    """[n] bool: whether the episode came to an end of its own, rather than to a time limit."""
    facts: dict[str, Any]
    """name -> [n]: what the environment says of each episode as a whole, such as `goal_rate`."""


def play_in_turn(env: gym.Env[Any, Any], act: Actor, seeds: Sequence[int], first: int = 0) -> Episodes:
    """Play one whole episode for each of at least one seed, in turn; the environment is reset with that seed.

    An environment states facts of an episode as numbers in `info["facts"]`; those of the last step count. `first` is
    the number of the first episode, for errors to name.
    """
    episodes = [_play(env, act, int(seed), first + index) for index, seed in enumerate(seeds)]
    T = max(len(episode.rewards) for episode in episodes)
    return Episodes(
        observations=np.stack([_padded(episode.observations, T) for episode in episodes]),
        actions=np.stack([_padded(episode.actions, T) for episode in episodes]),
        rewards=np.stack([_padded(episode.rewards, T) for episode in episodes]),
        mask=np.stack([np.arange(T) < len(episode.rewards) for episode in episodes]).astype(np.float64),
        last_observations=np.stack([np.asarray(episode.last_observations) for episode in episodes]),
        terminated=np.array([episode.terminated for episode in episodes]),
        facts=facts_of([episode.facts for episode in episodes]),
    )


def facts_of(stated: Sequence[dict[str, float]]) -> dict[str, np.ndarray]:
    """From the facts of each episode to name -> [n]."""
    names = stated[0].keys()
    for index, facts in enumerate(stated):
        if facts.keys() != names:
            raise ValueError(
                f"episode {index} ended with the facts {sorted(facts)}, episode 0 with {sorted(names)}: "
                "their means would be over different episodes. "
                'State the same names in info["facts"] at the last step of every episode.'
            )
    return {name: np.array([float(facts[name]) for facts in stated]) for name in names}


def _play(env: gym.Env[Any, Any], act: Actor, seed: int, index: int) -> Episodes:
    """One episode, its steps as lists."""
    observations: list[Any] = []
    actions: list[Any] = []
    rewards: list[float] = []

    def fault(what: str, remedy: str = "Mend the environment.") -> FaultyEnvironmentError:
        return FaultyEnvironmentError(
            f"{env}: {what} at step {len(actions)} of episode {index} (seed {seed}). {remedy}"
        )

    try:
        observation, info = env.reset(seed=seed)
    except Exception as error:
        raise fault(f"reset raised {type(error).__name__}: {error}") from error
    terminated = truncated = False
    while not (terminated or truncated):
        if len(actions) == LONGEST:
            raise fault("no end", "Give the environment a time limit (max_episode_steps=...).")
        if isinstance(observation, np.ndarray) and observation.dtype.kind == "f" and not np.isfinite(observation).all():
            raise fault(f"observation {observation}")
        action = act(observation, not rewards)
        # A copy: an environment may write its next observation into the same array.
        observations.append(copy.copy(observation))
        actions.append(action)
        try:
            observation, given, terminated, truncated, info = env.step(action)
        except Exception as error:
            raise fault(f"step raised {type(error).__name__}: {error}") from error
        reward = float(given)
        if not math.isfinite(reward):
            raise fault(f"reward {reward}")
        rewards.append(reward)
    return Episodes(
        observations, actions, rewards, None, copy.copy(observation), bool(terminated), info.get("facts", {})
    )


def _padded(steps: list[Any], T: int) -> np.ndarray:
    array = np.asarray(steps)
    return np.concatenate([array, np.zeros((T - len(array), *array.shape[1:]), dtype=array.dtype)])
