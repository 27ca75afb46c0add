"""The random stream of an environment's reward noise, separate from the stream of its dynamics."""

from __future__ import annotations

import numpy as np

# Not 0: NumPy treats [seed, 0] as [seed], and the noise would repeat the random numbers of the reset.
_REWARD_NOISE = 1001


def noise_stream(seed: int | None, np_random: np.random.Generator | None = None) -> np.random.Generator:
    """The stream for the seed of a reset; without a seed, the next child of `np_random`.

    Neither draws from `np_random`, so the dynamics are the same as without noise.
    """
    if seed is not None:
        return np.random.default_rng([seed, _REWARD_NOISE])
    if np_random is None:
        return np.random.default_rng()
    return np_random.spawn(1)[0]
