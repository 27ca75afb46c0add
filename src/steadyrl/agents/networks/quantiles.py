"""The distribution of a number as its quantiles, learned by a network or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from steadyrl.agents.networks.conv import in_chunks
from steadyrl.agents.networks.mlp import MLP
from steadyrl.agents.networks.protocols import Network

QUANTILES = 32
"""How many a network has, at the levels (k + 1/2) / QUANTILES."""
TABLE_QUANTILES = 8
"""How many a table has: in a finite environment, which is simulated in no time, they are most of the cost."""
HIDDEN = (64, 64)
"""Smaller than policies and values: it costs little, and it need not be exact."""


@dataclass(frozen=True)
class QuantileNetwork:
    """Quantiles given an observation and a time."""

    mlp: Network
    knows_time: ClassVar[bool] = True
    passes: ClassVar[int] = 10
    minibatch_size: ClassVar[int | None] = 256

    @classmethod
    def of(cls, inputs: int) -> QuantileNetwork:
        """For observations of so many numbers."""
        return cls(MLP((inputs + 1, *HIDDEN, QUANTILES)))

    def init(self, key: Array) -> Any:
        """Parameters to start from."""
        return self.mlp.init(key)

    def __call__(self, parameters: Any, observations: Array, times: Array) -> Array:
        """[..., inputs] and [...] to [..., QUANTILES]."""

        def quantiles(observations: Array, times: Array) -> Array:
            return self.mlp(parameters, jnp.concatenate([observations, times[..., None]], axis=-1))

        if not self.mlp.takes_bytes:
            return quantiles(observations, times)
        # Beside the times bytes are floats, and those of a whole batch of images would be gigabytes.
        rows = observations.reshape(-1, observations.shape[-1])
        return in_chunks(quantiles, rows, times.reshape(-1)).reshape(*times.shape, -1)

    def at_level(self, parameters: Any, level: float) -> Any:
        """The parameters without the last input before the time, which is a level."""
        return self.mlp.with_input_fixed(parameters, -2, level)


@dataclass(frozen=True)
class QuantileTable:
    """Quantiles given a state. They are the same at all times."""

    n_states: int
    knows_time: ClassVar[bool] = False
    passes: ClassVar[int] = 4
    minibatch_size: ClassVar[int | None] = None

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros((self.n_states, TABLE_QUANTILES))

    def __call__(self, parameters: Array, observations: Array, times: Array) -> Array:
        """[...] to [..., TABLE_QUANTILES]."""
        return parameters[observations]


def pinball_loss(quantiles: Array, targets: Array) -> Array:
    """[..., N] and [...] to [...]: on average least where the quantiles are those of the targets."""
    N = quantiles.shape[-1]
    levels = (jnp.arange(N) + 0.5) / N
    above = targets[..., None] - quantiles
    return jnp.maximum(levels * above, (levels - 1) * above).mean(axis=-1)
