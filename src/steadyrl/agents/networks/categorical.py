"""A policy for a choice of actions: a network with a softmax."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked
from steadyrl.agents.networks.network_policy import NetworkPolicy
from steadyrl.agents.networks.protocols import Network
from steadyrl.agents.networks.tables import draw, gumbel


@dataclass(frozen=True)
class CategoricalNetwork(NetworkPolicy):
    """pi(a|s) = softmax of the network's outputs; action a is a + `first` to the environment."""

    mlp: Network
    first: int = 0
    initial_output_scale: float = field(default=1.0, compare=False)  # Not part of what an update is compiled for.

    def init(self, key: Array) -> Any:
        """Parameters to start from."""
        return self.mlp.init(key, self.initial_output_scale)

    def log_prob(
        self, parameters: Any, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> Array:
        """Log pi(a|s) for each observation and each of its P actions."""
        return self.log_prob_and_entropy(parameters, observations, actions, masks)[0]

    def log_prob_and_entropy(
        self, parameters: Any, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> tuple[Array, Array]:
        """Also the entropy of the softmax at each observation."""
        assert observations is not None, "only tables have a probability for every state"
        assert actions is not None, "actions come with observations"
        table = jax.nn.log_softmax(masked(self.mlp(parameters, observations), masks))
        # A product with a one-hot row: XLA's gather is much slower, and its gradient more so.
        chosen = jax.nn.one_hot(actions, self.mlp.outputs)
        return jnp.einsum("...a,...pa->...p", table, chosen), -(jnp.exp(table) * table).sum(axis=-1)

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """See `gumbel`."""
        return gumbel(generator, steps, self.mlp.outputs)

    def jax_noise(self, key: Array) -> Array:
        """See `gumbel`."""
        return jax.random.gumbel(key, (self.mlp.outputs,))

    def choose(self, parameters: Any, outputs: Any, noise: Any, masks: Any = None) -> Any:
        """[k]: the number of an action for each row of outputs."""
        return draw(masked(outputs, masks), noise)

    def act_jax(self, parameters: Any, observations: Array, noise: Array | None) -> Array:
        """The same in JAX."""
        action: Array = draw(self.mlp(parameters, observations), noise)
        return action

    def to_space(self, actions: Any) -> Any:
        """Counted from the space's first action."""
        return actions + self.first if self.first else actions

    def at_level(self, parameters: Any, level: float) -> Any:
        """The parameters without the last input, which is a level."""
        return self.mlp.with_input_fixed(parameters, -1, level)
