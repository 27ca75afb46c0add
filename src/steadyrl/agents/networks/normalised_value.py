"""Values in units of what they are fitted to, so that one step size serves rewards of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.agents.networks.mlp import Layers
from steadyrl.agents.networks.protocols import Network
from steadyrl.agents.networks.running_scale import RunningScale


class NormalisedParameters(NamedTuple):
    """The layers of a network, and the scale of what it is fitted to."""

    layers: Layers
    scale: RunningScale


@dataclass(frozen=True)
class NormalisedValue:
    """V(s) = mean + std * network(s), with the running mean and standard deviation of the targets."""

    mlp: Network

    def init(self, key: Array) -> NormalisedParameters:
        """Parameters to start from, with values near 0."""
        return NormalisedParameters(self.mlp.init(key, 0.01), RunningScale.unknown())

    def __call__(self, parameters: NormalisedParameters, observations: Array | None) -> Array:
        """[..., inputs] to [...]."""
        assert observations is not None, "only tables have a value for every state"
        scale = jax.lax.stop_gradient(parameters.scale)
        return scale.mean + scale.std * jnp.squeeze(self.mlp(parameters.layers, observations), axis=-1)

    def rescaled(
        self, parameters: NormalisedParameters, targets: Array, shares: Array, episodes: int
    ) -> NormalisedParameters:
        """With the scale of a batch of targets, and a last layer that leaves what was learned as it was.

        van Hasselt et al., Learning values across many orders of magnitude (2016), call it PopArt.
        """
        old, new = parameters.scale, parameters.scale.updated(targets, shares, episodes)
        learned = old.episodes > 0
        shrink = jnp.where(learned, old.std / new.std, 1)
        shift = jnp.where(learned, (old.mean - new.mean) / new.std, 0)
        *hidden, last = parameters.layers
        last = {"weight": shrink * last["weight"], "bias": shrink * last["bias"] + shift}
        return NormalisedParameters([*hidden, last], new)

    def at_level(self, parameters: NormalisedParameters, level: float) -> NormalisedParameters:
        """The parameters without the last input, which is a level."""
        return parameters._replace(layers=self.mlp.with_input_fixed(parameters.layers, -1, level))
