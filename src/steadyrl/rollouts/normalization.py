"""Observation normalization with running estimates of mean and variance."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

CLIP = 10.0
"""Normalized observations are clipped to [-CLIP, CLIP]."""
EPSILON = 1e-8
"""Added to variances, of which some may be 0."""


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

    def update_masked(self, x: jax.Array, mask: jax.Array) -> RunningMoments:
        """The moments after adding the rows of `x` [..., inputs] where `mask` [...] is True; in JAX."""
        rows, where = x.reshape(-1, x.shape[-1]), mask.reshape(-1, 1)
        added = where.sum()
        mean = jnp.where(where, rows, 0).sum(axis=0) / added
        variance = jnp.where(where, (rows - mean) ** 2, 0).sum(axis=0) / added
        count = self.count + added
        weight, delta = added / count, mean - self.mean
        combined = (1 - weight) * self.variance + weight * variance + weight * (1 - weight) * delta**2
        return RunningMoments(count, self.mean + weight * delta, combined)

    def normalize(self, x: Any) -> Any:
        """`x` [..., inputs] in standard deviations from the mean."""
        if isinstance(x, jax.Array):
            return jnp.clip((x - self.mean) / jnp.sqrt(self.variance + EPSILON), -CLIP, CLIP)
        scaled = (x - self.mean) / np.sqrt(self.variance + np.float32(EPSILON))
        return np.clip(scaled, -CLIP, CLIP, out=scaled)
