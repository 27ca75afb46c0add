"""One seed, several independent random streams: what is drawn in one can never move another."""

from __future__ import annotations

from enum import IntEnum

import jax
from jax import Array


class Stream(IntEnum):
    """What a stream is for. The numbers are part of every result: never change them, only add."""

    PARAMETERS = 0
    EPISODES = 1
    EVALUATION = 2
    PREDICTIONS = 3
    ACTIONS = 4
    REPLAY = 5


def key_of(seed: int, stream: Stream) -> Array:
    """The JAX key of a stream."""
    return jax.random.fold_in(jax.random.key(seed), int(stream))
