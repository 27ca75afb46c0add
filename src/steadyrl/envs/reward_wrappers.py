"""Wrappers that clip rewards or bend them: the risk that is learned would not be that of the environment's returns."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import vector

from steadyrl.envs.running_statistics import wrappers_of

_CLIPPING = (gym.wrappers.ClipReward, vector.ClipReward)
_TRANSFORMS = (gym.wrappers.TransformReward, vector.TransformReward)
_PROBES = (-1000.0, -10.0, -1.0, 10.0, 1000.0)
"""Rewards at which a function is compared with the line through its values at 0 and 1."""


def refuse_clipped_rewards(env: Any) -> None:
    """An error for an environment to train in that clips rewards; a warning if a function changes them otherwise.

    A function of the form a * r + b is fine: it scales returns, and shifts them by the length of an episode.
    """
    for wrapper in wrappers_of(env):
        name = type(wrapper).__name__
        if isinstance(wrapper, _CLIPPING) or (isinstance(wrapper, gym.RewardWrapper) and "clip" in name.lower()):
            raise ValueError(
                f"{name}: clipped rewards change the law of the returns whose risk is measured, and the rare large "
                "losses that it consists of are cut first. Remove the wrapper; to scale rewards, use "
                "gymnasium.wrappers.TransformReward with a factor."
            )
        if isinstance(wrapper, _TRANSFORMS) and not _is_affine(wrapper.func):
            warnings.warn(
                f"{name}: its function of the reward is not of the form a * r + b, so the risk that is learned and "
                "reported is that of other returns than the environment's own.",
                UserWarning,
                stacklevel=4,
            )


def _is_affine(function: Any) -> bool:
    """Whether it is, at a few rewards; True if that cannot be found out."""
    try:
        zero, one, *values = (float(function(reward)) for reward in (0.0, 1.0, *_PROBES))
    except Exception:  # It may expect an array, or rewards of its own environment.
        return True
    return all(np.isclose(value, zero + (one - zero) * r) for value, r in zip(values, _PROBES, strict=True))
