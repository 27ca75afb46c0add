"""The random stream of an environment's reward noise, apart from the stream that moves it."""

from __future__ import annotations

import numpy as np

# Not 0: NumPy takes [seed, 0] for the same seed as [seed], and the noise would repeat the draws of the reset.
_REWARD_NOISE = 1001


def noise_stream(seed: int | None, np_random: np.random.Generator | None = None) -> np.random.Generator:
    """The stream that follows from the seed of a reset; without one, the next child of `np_random`.

    Neither draws from `np_random`, so that an environment moves as it would without noise.
    """
    if seed is not None:
        return np.random.default_rng([seed, _REWARD_NOISE])
    if np_random is None:
        return np.random.default_rng()
    return np_random.spawn(1)[0]
