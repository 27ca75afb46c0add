"""Observation normalization with running estimates of mean and variance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

CLIP = 10.0
"""Normalized observations are clipped to [-CLIP, CLIP]."""


class RunningMoments(NamedTuple):
    """Count, mean and variance of all observations used for training so far."""

    count: Any
    mean: Any
    """[inputs]."""
    variance: Any
    """[inputs]."""

    @classmethod
    def empty(cls, inputs: int) -> RunningMoments:
        """Initial values, with which observations are only clipped."""
        return cls(np.float32(0), np.zeros(inputs, np.float32), np.ones(inputs, np.float32))

    def update(self, x: Any) -> RunningMoments:
        """The moments after adding the rows of `x` [k, inputs]."""
        x = np.asarray(x, np.float64)
        count = float(self.count) + len(x)
        weight = len(x) / count
        delta = x.mean(axis=0) - self.mean
        # Chan's formula for the moments of two samples combined.
        variance = (1 - weight) * self.variance + weight * x.var(axis=0) + weight * (1 - weight) * delta**2
        return RunningMoments(*(np.asarray(part, np.float32) for part in (count, self.mean + weight * delta, variance)))

    def normalize(self, x: Any) -> Any:
        """`x` [..., inputs] in standard deviations from the mean."""
        scaled = (x - self.mean) / np.sqrt(self.variance + np.float32(1e-8))
        return np.clip(scaled, -CLIP, CLIP, out=scaled)
