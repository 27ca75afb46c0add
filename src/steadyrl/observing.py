"""Observation normalisation: the running mean and spread of what was seen, and observations in units of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FARTHEST = 10.0
"""Normalised observations are clipped to this."""


class Seen(NamedTuple):
    """The moments of all observations that were learned from."""

    count: Any
    mean: Any
    """[inputs]."""
    variance: Any
    """[inputs]."""

    @classmethod
    def nothing(cls, inputs: int) -> Seen:
        """Before the first round: observations are only clipped."""
        return cls(np.float32(0), np.zeros(inputs, np.float32), np.ones(inputs, np.float32))

    def and_also(self, x: Any) -> Seen:
        """With the rows of `x` [k, inputs] added."""
        x = np.asarray(x, np.float64)
        before, more = float(self.count), len(x)
        share = more / (before + more)
        step = x.mean(axis=0) - self.mean
        # Chan's formula for the moments of two samples taken together.
        variance = (1 - share) * self.variance + share * x.var(axis=0) + share * (1 - share) * step**2
        return Seen(*(np.asarray(part, np.float32) for part in (before + more, self.mean + share * step, variance)))

    def normalised(self, x: Any) -> Any:
        """`x` [..., inputs] in units of the spread around the mean."""
        scaled = (x - self.mean) / np.sqrt(self.variance + np.float32(1e-8))
        return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)
