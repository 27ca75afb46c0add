"""One seed, several independent random streams: numbers drawn from one stream never shift another."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class Stream(IntEnum):
    """What a stream is for. The numbers are part of every result: never change one, only add."""

    PARAMETERS = 0
    EPISODES = 1
    EVALUATION = 2
    PREDICTIONS = 3
    ACTIONS = 4
    REPLAY = 5


class EvaluationStream(IntEnum):
    """Streams of `steadyrl.evaluate`, children of its own seed."""

    BOOTSTRAP = 0
    POLICY = 1
    EPISODES = 2


def stream_key(seed: int, stream: Stream) -> Any:
    """The JAX key of a stream."""
    import jax

    return jax.random.fold_in(jax.random.key(seed), int(stream))


def stream_generator(seed: int, stream: Stream) -> np.random.Generator:
    """The NumPy generator of a stream."""
    return np.random.default_rng([seed, stream])


def training_episode_seed(seed: int, episode: int) -> int:
    """The seed that episode number `episode` of a training run starts from."""
    return int(np.random.SeedSequence([seed, Stream.EPISODES, episode]).generate_state(1)[0])


def evaluation_seed(seed: int, episodes: int) -> int:
    """The seed of an evaluation during training, after `episodes` training episodes."""
    return int(np.random.SeedSequence([seed, Stream.EVALUATION, episodes]).generate_state(1)[0])


def play_seeds(seed: int, episodes: int) -> list[int]:
    """The seeds of the episodes of `Agent.play`."""
    return [int(s) for s in np.random.SeedSequence([seed, Stream.EVALUATION]).generate_state(episodes)]


def evaluation_stream_seed(seed: int, *key: int) -> int:
    """A seed for one of the streams of `steadyrl.evaluate`: (stream,) or (EPISODES, index of the episode)."""
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
