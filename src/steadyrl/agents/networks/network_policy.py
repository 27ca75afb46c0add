"""What policies with a network have in common: acting in NumPy, from a hidden state where the network is recurrent."""

from __future__ import annotations

from typing import Any

from jax import Array

from steadyrl.agents.networks.protocols import Network


class NetworkPolicy:
    """A policy whose actions are drawn from the outputs of a network."""

    mlp: Network

    def layers(self, parameters: Any) -> Any:
        """The parameters of the network."""
        return parameters

    def choose(self, parameters: Any, outputs: Any, noise: Any, masks: Any = None) -> Any:
        """[..., a]: an action for each row of outputs, in NumPy; see `act`."""
        raise NotImplementedError

    def act(self, parameters: Any, observations: Any, noise: Any, masks: Any = None) -> Any:
        """See `NumpyPolicy`."""
        return self.choose(parameters, self.mlp.apply_numpy(self.layers(parameters), observations), noise, masks)

    @property
    def state_size(self) -> int:
        """See `RecurrentPolicy`; 0 for a network without memory."""
        return getattr(self.mlp, "state_size", 0)

    def act_from(
        self, parameters: Any, observations: Any, states: Any, noise: Any, masks: Any = None
    ) -> tuple[Any, Any]:
        """See `RecurrentPolicy`."""
        network: Any = self.mlp
        outputs, states = network.step_numpy(self.layers(parameters), observations, states)
        return self.choose(parameters, outputs, noise, masks), states

    def features(self, parameters: Any, observations: Array) -> Array:
        """[..., width]: what enters the last layer."""
        return self.mlp.features(self.layers(parameters), observations)
