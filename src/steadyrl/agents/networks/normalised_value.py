"""Values in units of what they are fitted to, so that one step size serves rewards of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.agents.networks.mlp import MLP, Layers

RECENT_EPISODES = 100
"""About how many of the latest episodes determine mean and scale."""


class NormalisedParameters(NamedTuple):
    """The layers of a network, and the moments of what it is fitted to."""

    layers: Layers
    mean: Array
    mean_square: Array
    episodes: Array
    """Seen so far."""

    @property
    def scale(self) -> Array:
        """The standard deviation of what the values are fitted to."""
        return jax.lax.stop_gradient(jnp.sqrt(jnp.maximum(self.mean_square - self.mean**2, 1e-8)))


@dataclass(frozen=True)
class NormalisedValue:
    """V(s) = mean + scale * network(s), with running moments of the targets."""

    mlp: MLP

    def init(self, key: Array) -> NormalisedParameters:
        """Parameters to start from, with values near 0."""
        return NormalisedParameters(self.mlp.init(key, 0.01), jnp.float32(0), jnp.float32(1), jnp.float32(0))

    def __call__(self, parameters: NormalisedParameters, observations: Array | None) -> Array:
        """[..., inputs] to [...]."""
        assert observations is not None, "only tables have a value for every state"
        outputs = jnp.squeeze(self.mlp(parameters.layers, observations), axis=-1)
        return jax.lax.stop_gradient(parameters.mean) + parameters.scale * outputs

    def rescaled(
        self, parameters: NormalisedParameters, targets: Array, shares: Array, episodes: int
    ) -> NormalisedParameters:
        """With the moments of a batch of targets added, and a last layer that leaves what was learned as it was.

        van Hasselt et al., Learning values across many orders of magnitude (2016), call it PopArt.
        """
        weight = episodes / (jnp.minimum(parameters.episodes, RECENT_EPISODES) + episodes)
        moved = parameters._replace(
            mean=parameters.mean + weight * ((shares * targets).sum() - parameters.mean),
            mean_square=parameters.mean_square + weight * ((shares * targets**2).sum() - parameters.mean_square),
            episodes=parameters.episodes + episodes,
        )
        *hidden, last = parameters.layers
        learned = parameters.episodes > 0
        shrink = jnp.where(learned, parameters.scale / moved.scale, 1)
        shift = jnp.where(learned, (parameters.mean - moved.mean) / moved.scale, 0)
        last = {"weight": shrink * last["weight"], "bias": shrink * last["bias"] + shift}
        return moved._replace(layers=[*hidden, last])
