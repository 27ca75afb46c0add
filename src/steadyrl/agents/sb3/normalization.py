"""What VecNormalize has seen: the scales of observations and rewards that a model has learned with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents.sb3.parameters import Layers
from steadyrl.rollouts.normalization import CLIP, EPSILON, RunningMoments


class Scales(NamedTuple):
    """The moments of observations, if they were normalized, and the unit of rewards."""

    moments: RunningMoments | None
    reward: float

    @classmethod
    def of(cls, vec_normalize: Any) -> Scales:
        """Those of a VecNormalize; None for none."""
        if vec_normalize is None:
            return cls(None, 1.0)
        epsilon = float(vec_normalize.epsilon)
        # VecNormalize divides by sqrt(variance + epsilon), without subtracting a mean.
        reward = float(np.sqrt(vec_normalize.ret_rms.var + epsilon)) if vec_normalize.norm_reward else 1.0
        if not vec_normalize.norm_obs:
            return cls(None, reward)
        seen = vec_normalize.obs_rms
        if isinstance(seen, dict):
            raise ValueError(
                "VecNormalize of Dict observations has statistics for each key, and here there are some for all inputs "
                "or none. Flatten observations with gymnasium.wrappers.FlattenObservation."
            )
        if vec_normalize.clip_obs != CLIP:
            raise ValueError(
                f"VecNormalize has clip_obs={vec_normalize.clip_obs:g}, and normalized observations are clipped at "
                f"{CLIP:g} here. Train it with clip_obs={CLIP:g}, which is the default."
            )
        # As if with our own epsilon.
        parts = seen.count, np.ravel(seen.mean), np.ravel(seen.var) + (epsilon - EPSILON)
        return cls(RunningMoments(*(np.asarray(part, np.float32) for part in parts)), reward)

    def folded(self, layers: Layers) -> Layers:
        """The layers of a network that takes observations as they are, followed by other inputs as they were.

        (x - mean) / std is part of the first layer, but for the clipping of observations far away.
        """
        if self.moments is None:
            return layers
        mean, variance = (np.asarray(part, np.float64) for part in (self.moments.mean, self.moments.variance))
        first, *others = layers
        weight = np.array(first["weight"], np.float64)
        weight[: len(mean)] /= np.sqrt(variance + EPSILON)[:, None]
        bias = first["bias"] - mean @ weight[: len(mean)]
        return [{"weight": _single(weight), "bias": _single(bias)}, *others]

    def in_rewards(self, layers: Layers) -> Layers:
        """The layers of a network whose values are in the environment's rewards."""
        *hidden, last = layers
        return [*hidden, {name: _single(self.reward * array) for name, array in last.items()}]


def _single(array: Any) -> NDArray[np.float32]:
    return np.asarray(array, np.float32)
