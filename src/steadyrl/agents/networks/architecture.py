"""The layers of a network, as settings describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from steadyrl.agents.networks.conv import ConvNetwork
from steadyrl.agents.networks.mlp import MLP
from steadyrl.agents.networks.protocols import Network
from steadyrl.envs.images import large_images
from steadyrl.envs.spaces import feature_count, keeps_bytes


@dataclass(frozen=True)
class Architecture:
    """What is between the inputs and the outputs of a network."""

    kind: str
    """"mlp" for dense layers, "cnn" for convolutions of images and then dense layers."""
    hidden: tuple[int, ...]
    activation: str = "relu"
    layer_norm: bool = False
    orthogonal: bool = False

    @classmethod
    def of(cls, settings: Any) -> Architecture:
        """That of an agent's networks."""
        s = settings
        return cls(s.network, s.hidden, s.activation, s.layer_norm, s.orthogonal)

    def network(self, observation_space: gym.Space[Any], outputs: int, more_inputs: int = 0) -> Network:
        """A network for observations, followed by so many more numbers."""
        options: dict[str, Any] = {name: getattr(self, name) for name in ("activation", "layer_norm", "orthogonal")}
        features, in_bytes = feature_count(observation_space), keeps_bytes(observation_space)
        inputs = features + more_inputs
        if self.kind == "cnn":
            images = large_images(observation_space)
            return ConvNetwork.of(images, inputs, self.hidden, outputs, in_bytes, **options)
        return MLP((inputs, *self.hidden, outputs), **options, pixels=features if in_bytes else 0)
