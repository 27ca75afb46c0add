"""Reward noise: its random stream, separate from that of the dynamics, and how an environment reports it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

# Not 0: NumPy treats [seed, 0] as [seed], and the noise would repeat the random numbers of the reset.
_REWARD_NOISE = 1001


KEY = "reward_noise"
"""The key in `info` of the noise in the reward of a step; steps without noise do not have it."""


def noise_info(noise: float | None) -> dict[str, float]:
    """The entry of `info` that reports the noise in the reward of this step, or none for None."""
    return {} if noise is None else {KEY: float(noise)}


def noise_of(info: Mapping[str, Any]) -> float | None:
    """The noise that an `info` reports; None if it reports none, or something else than a finite number."""
    noise = info.get(KEY)
    if isinstance(noise, bool) or not isinstance(noise, float | int | np.floating | np.integer):
        return None
    return float(noise) if math.isfinite(noise) else None


def noise_stream(seed: int | None, np_random: np.random.Generator | None = None) -> np.random.Generator:
    """The stream for the seed of a reset; without a seed, the next child of `np_random`.

    Neither draws from `np_random`, so the dynamics are the same as without noise.
    """
    if seed is not None:
        return np.random.default_rng([seed, _REWARD_NOISE])
    if np_random is None:
        return np.random.default_rng()
    return np_random.spawn(1)[0]
