"""The layers of a network, as settings describe them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from steadyrl.agents.networks.conv import ConvNetwork
from steadyrl.agents.networks.custom import CustomNetwork
from steadyrl.agents.networks.gru import GRU
from steadyrl.agents.networks.mlp import MLP
from steadyrl.agents.networks.protocols import Network
from steadyrl.envs.images import large_images
from steadyrl.envs.spaces import feature_count, keeps_bytes


@dataclass(frozen=True)
class Architecture:
    """What is between the inputs and the outputs of a network."""

    kind: str
    """"mlp" for dense layers, "cnn" for convolutions of images and then dense layers, "gru" for dense layers of which
    the last is recurrent, "custom" for a `function`."""
    hidden: tuple[int, ...]
    activation: str = "relu"
    layer_norm: bool = False
    orthogonal: bool = False
    function: Callable[[int], Any] | None = None
    """Makes a `Body` for a number of inputs."""

    @classmethod
    def of(cls, settings: Any, function: Callable[[int], Any] | None = None) -> Architecture:
        """That of an agent's networks; with a `function` where the setting `network` is one."""
        s = settings
        return cls(s.network, s.hidden, s.activation, s.layer_norm, s.orthogonal, function)

    def network(self, observation_space: gym.Space[Any], outputs: int, more_inputs: int = 0) -> Network:
        """A network for observations, followed by so many more numbers."""
        options: dict[str, Any] = {name: getattr(self, name) for name in ("activation", "layer_norm", "orthogonal")}
        features, in_bytes = feature_count(observation_space), keeps_bytes(observation_space)
        inputs, pixels = features + more_inputs, features if in_bytes else 0
        if self.function is not None:
            return CustomNetwork.of(self.function, inputs, outputs, pixels)
        if self.kind == "cnn":
            images = large_images(observation_space)
            return ConvNetwork.of(images, inputs, self.hidden, outputs, in_bytes, **options)
        if self.kind == "gru":
            return GRU.of(inputs, self.hidden, outputs, **options, pixels=pixels)
        return MLP((inputs, *self.hidden, outputs), **options, pixels=pixels)
