"""Where numbers are and how far they spread, over recent episodes: the units that networks learn them in."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

RECENT_EPISODES = 100
"""About how many of the latest episodes count."""


class RunningScale(NamedTuple):
    """Running mean and standard deviation."""

    mean: Array
    mean_square: Array
    episodes: Array
    """Seen so far."""

    @classmethod
    def unknown(cls) -> RunningScale:
        """Before the first episode: 0 and 1."""
        return cls(jnp.float32(0), jnp.float32(1), jnp.float32(0))

    @property
    def std(self) -> Array:
        """The standard deviation."""
        return jnp.sqrt(jnp.maximum(self.mean_square - self.mean**2, 1e-8))

    def weight(self, episodes: int) -> Array:
        """Of so many new episodes in a mean over recent ones."""
        return episodes / (jnp.minimum(self.episodes, RECENT_EPISODES) + episodes)

    def updated(self, numbers: Array, shares: Array, episodes: int) -> RunningScale:
        """With the numbers of so many new episodes, whose `shares` sum to 1."""
        weight = self.weight(episodes)
        mean = self.mean + weight * ((shares * numbers).sum() - self.mean)
        mean_square = self.mean_square + weight * ((shares * numbers**2).sum() - self.mean_square)
        return RunningScale(mean, mean_square, self.episodes + episodes)
