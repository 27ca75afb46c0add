"""A policy for numbers within bounds: a normal distribution around a network's output."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steadyrl.agents.networks.action_range import ActionRange
from steadyrl.agents.networks.network_policy import NetworkPolicy
from steadyrl.agents.networks.protocols import Network


@dataclass(frozen=True)
class NormalNetwork(NetworkPolicy):
    """A normal distribution for each dimension of the action, whose standard deviation does not depend on the state.

    Where the range has bounds and `squash` is set, the mean is tanh of the network's output, else the output itself.
    Samples may leave the bounds: the likelihood is that of the sample, the environment gets it clipped (deviation 30).
    """

    mlp: Network
    range: ActionRange
    initial_log_std: float = field(compare=False)  # Not part of what an update is compiled for, as the next.
    initial_output_scale: float = field(default=1.0, compare=False)
    squash: bool = True

    @property
    def squashed(self) -> bool:
        """Whether the mean is tanh of the network's output."""
        return self.squash and self.range.bounded

    def init(self, key: Array) -> dict[str, Any]:
        """Parameters to start from."""
        log_std = jnp.full(self.range.dimensions, self.initial_log_std, jnp.float32)
        return {"mean": self.mlp.init(key, self.initial_output_scale), "log_std": log_std}

    def log_prob(
        self,
        parameters: dict[str, Any],
        observations: Array | None,
        actions: Array | None,
        masks: Any = None,
    ) -> Array:
        """Log of the density at each of P actions: [..., inputs] and [..., P, d] to [..., P]."""
        return self.log_prob_and_entropy(parameters, observations, actions)[0]

    def log_prob_and_entropy(
        self,
        parameters: dict[str, Any],
        observations: Array | None,
        actions: Array | None,
        masks: Any = None,
    ) -> tuple[Array, Array]:
        """Also the entropy before actions are clipped, which is the same at every observation."""
        assert observations is not None, "only tables have a probability for every state"
        assert actions is not None, "actions come with observations"
        mean = self._mean(parameters, observations)
        log_std = parameters["log_std"]
        z = (actions - mean[..., None, :]) * jnp.exp(-log_std)
        log_prob = jnp.sum(-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi), axis=-1)
        entropy = jnp.sum(log_std + 0.5 * math.log(2 * math.pi * math.e))
        return log_prob, jnp.broadcast_to(entropy, mean.shape[:-1])

    def _mean(self, parameters: dict[str, Any], observations: Array) -> Array:
        mean = self.mlp(parameters["mean"], observations)
        return jnp.tanh(mean) if self.squashed else mean

    def layers(self, parameters: dict[str, Any]) -> Any:
        """The parameters of the network."""
        return parameters["mean"]

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, d]: standard normal."""
        return generator.standard_normal((steps, self.range.dimensions), dtype=np.float32)

    def jax_noise(self, key: Array) -> Array:
        """[d]: standard normal."""
        return jax.random.normal(key, (self.range.dimensions,))

    def choose(self, parameters: dict[str, Any], outputs: Any, noise: Any, masks: Any = None) -> Any:
        """[k, d]: a sample, or the mean."""
        mean = np.tanh(outputs) if self.squashed else outputs
        return mean if noise is None else mean + np.exp(parameters["log_std"]) * noise

    def act_jax(self, parameters: dict[str, Any], observations: Array, noise: Array | None) -> Array:
        """The same in JAX."""
        mean = self._mean(parameters, observations)
        return mean if noise is None else mean + jnp.exp(parameters["log_std"]) * noise

    def to_space(self, actions: Any) -> Any:
        """Clipped to the bounds, in the space's units, shape and precision."""
        return self.range.to_space(actions)

    def at_level(self, parameters: dict[str, Any], level: float) -> dict[str, Any]:
        """The parameters without the last input, which is a level."""
        return {**parameters, "mean": self.mlp.with_input_fixed(parameters["mean"], -1, level)}
