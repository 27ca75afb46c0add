"""How many worker processes play the episodes of a batch: what the user asked for, or what a measurement suggests."""

from __future__ import annotations

import pickle
import time
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.base.machine import usable_cores
from steadyrl.base.shown import shown
from steadyrl.envs.source import Source
from steadyrl.rollouts.simulators.masks import ActionMasks

MEASURED_SECONDS = 1.0
SECONDS_TOGETHER, SECONDS_ALONE = 12e-6, 70e-6
"""Of a step without the environment's own part: of many episodes played together, and of one in a worker (measured)."""
LEAST_GAIN = 1.3
"""How much faster workers must be expected to be before they are started."""
MOST_WORKERS = 1024


def checked_workers(
    workers: Any, source: Source, engine: str, episodes: int, policy: Any = None, obstacle: str | None = None
) -> int:
    """The number of worker processes, 0 for none; an error if the environment or the method does not allow any.

    "auto" measures the environment. `episodes` is how many there are in a batch, `policy` is what is sent to workers,
    and `obstacle` says why the method cannot have any, if it cannot.
    """
    if workers != "auto" and (isinstance(workers, bool) or not isinstance(workers, int | np.integer)):
        raise ValueError(f"workers={shown(workers)}: pass a number of processes, 0 for none, or 'auto'.")
    if workers != "auto" and not 0 <= workers <= MOST_WORKERS:
        raise ValueError(f"workers={workers}: a number of processes is needed, from 0 to {MOST_WORKERS}.")
    if workers == 0:
        return 0
    problem = obstacle or _problem(source, engine, policy)
    if workers == "auto":
        return 0 if problem or episodes == 1 else _measured(source, episodes)
    if problem:
        raise ValueError(f"workers={workers}: {problem}")
    return int(workers)


def _problem(source: Source, engine: str, policy: Any) -> str | None:
    """Why the episodes of an environment cannot be played in other processes; None if they can."""
    if engine != "gymnasium":
        return (
            f"they are for environments that Python steps one by one, and the engine here is {engine!r}. "
            "Leave workers out, or add engine='gymnasium'."
        )
    if source.another is None:
        return (
            "each needs an environment of its own, and an environment object cannot be copied. Pass an id, "
            "'module:factory', or a function in a module that creates it."
        )
    if reason := _unpicklable(source.another):
        return (
            f"the function that creates the environment cannot be sent to another process ({reason}). "
            "Pass an id, 'module:factory', or a function that is defined in a module, not in another function."
        )
    if reason := _unpicklable(policy):
        return (
            f"the policy cannot be sent to another process ({reason}). Define the class of what network= makes in a "
            "module, not in a function, or leave workers out."
        )
    return None


def _unpicklable(value: Any) -> str | None:
    """Why something cannot be pickled; None if it can be."""
    try:
        pickle.dumps(value)
    except Exception as error:
        return " ".join(str(error).split())
    return None


def _measured(source: Source, episodes: int) -> int:
    """As many workers as cores, if the environment is so slow that they pay; 0 if not, or if it fails."""
    number = min(usable_cores(), episodes)
    assert source.another is not None
    try:
        with closing(source.another()) as env:
            seconds = step_seconds(env)
    except Exception:  # Training reports it, with the episode and the step.
        return 0
    gain = (seconds + SECONDS_TOGETHER) / ((seconds + SECONDS_ALONE) / number)
    return number if gain >= LEAST_GAIN else 0


def step_seconds(env: gym.Env[Any, Any], limit: float = MEASURED_SECONDS) -> float:
    """Seconds of a step with random actions, resets included, measured for `limit` seconds."""
    env.action_space.seed(0)
    masks = ActionMasks(env.action_space)
    env.reset(seed=0)  # What an environment loads at its first reset, it loads once.
    start, steps, done = time.perf_counter(), 0, True
    while time.perf_counter() - start < limit or not steps:
        if done:
            masks.after_reset(0, 1, env, env.reset(seed=steps)[1])
        _, _, terminated, truncated, info = env.step(_random_action(env, masks.current))
        steps, done = steps + 1, bool(terminated or truncated)
        masks.after_step(0, info)
    return (time.perf_counter() - start) / steps


def _random_action(env: gym.Env[Any, Any], masks: Any) -> Any:
    """An action that is allowed."""
    if masks is None or not isinstance(env.action_space, gym.spaces.Discrete):
        return env.action_space.sample()
    return env.action_space.sample(mask=masks[0].astype(np.int8))
