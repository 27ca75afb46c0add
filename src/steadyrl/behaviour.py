"""A policy in NumPy, ready to act: what collectors are given of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.networks import Acting
from steadyrl.observing import Seen
from steadyrl.spaces import features
from steadyrl.streams import Stream

BLOCK = 64
"""Steps for which random numbers are drawn at once."""


@dataclass(frozen=True)
class Behaviour:
    """How to act on what is seen. Parameters are NumPy's."""

    policy: Acting
    parameters: Any
    observation_space: gym.Space[Any] | None
    """To make features of; None for tables, which take the number of a state."""
    seen: Seen | None = None
    """To normalise features with; None to leave them as they are."""

    def see(self, observations: Any) -> Any:
        """[k, ...]: k observations of a simulator as they are learned from, not yet normalised."""
        return observations if self.observation_space is None else features(self.observation_space, observations)

    def normalised(self, seen: Any) -> Any:
        """What `see` gave, as the networks take it."""
        return seen if self.seen is None else self.seen.normalised(seen)

    def act(self, seen: Any, noise: Any) -> Any:
        """[k, ...]: an action for each row of what `see` gave; the likeliest where `noise` is None."""
        return self.policy.act(self.parameters, self.normalised(seen), noise)


class Noise:
    """All that is random about the actions of n episodes: each has a stream of its own, from the episode's seed."""

    def __init__(self, policy: Acting, seeds: Any) -> None:
        self._policy = policy
        self._generators = [np.random.default_rng([int(seed), Stream.ACTIONS]) for seed in seeds]

    def at(self, t: int, slots: Any) -> Any:
        """[k, ...]: for step t = 0, 1, ... in turn, of the episodes `slots`."""
        if t % BLOCK == 0:
            # [BLOCK, n, ...]: a step is one row.
            drawn = [self._policy.noise(generator, BLOCK) for generator in self._generators]
            self._block = np.ascontiguousarray(np.stack(drawn, axis=1))
        row = self._block[t % BLOCK]
        return row if len(slots) == len(row) else row[slots]
