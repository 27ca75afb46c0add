"""What `network=` takes besides names: a description of layers, which is short for other settings, or a function."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from steadyrl.base.names import unknown
from steadyrl.base.shown import shown
from steadyrl.base.values import read_value
from steadyrl.envs.images import large_images

CUSTOM = "custom"
"""The value of the setting `network` where it was given as a function."""


@dataclass(frozen=True)
class NetworkDescription:
    """Layers of networks, for `network=`; what is None has the default of the agent. Each is also a setting."""

    hidden: tuple[int, ...] | None = None
    """Sizes of the hidden layers."""
    activation: str | None = None
    """'relu', 'tanh', 'elu' or 'silu'."""
    layer_norm: bool | None = None
    """Whether hidden layers have layer normalization."""
    orthogonal: bool | None = None
    """Whether weights start orthogonal."""
    shared_trunk: bool | None = None
    """Whether policy and values share all layers but the last; with PPO."""
    kind: str | None = None
    """'mlp', 'cnn' or 'gru'; by default convolutions for images."""


def expanded(given: Mapping[str, Any], observation_space: gym.Space[Any] | None = None) -> dict[str, Any]:
    """Settings with `network` as a name, and what a description says as settings of their own."""
    network = given.get("network")
    if isinstance(network, str) and network.strip().startswith("{"):
        network = read_value(network)  # From the command line.
    if network == CUSTOM:
        raise ValueError("network='custom': pass the function itself, which makes the network.")
    if dataclasses.is_dataclass(network) and not isinstance(network, type):
        network = {name: value for name, value in dataclasses.asdict(network).items() if value is not None}
    if callable(network):
        return {**given, "network": CUSTOM}
    if not isinstance(network, Mapping):
        return dict(given)
    layers = dict(network)
    images = observation_space is not None and bool(large_images(observation_space))
    kind = layers.pop("kind", None) or ("cnn" if images else "mlp")
    known = [field.name for field in dataclasses.fields(NetworkDescription)]
    for name in layers:
        if name not in known:
            raise ValueError(unknown("part of network", str(name), known))
        if name in given:
            raise ValueError(f"{name}: it is given in network={shown(network)} too. Give it once.")
    return {**given, **layers, "network": kind}


def with_network_described(pairs: Mapping[str, str], observation_space: gym.Space[Any]) -> dict[str, str]:
    """Settings as texts of the command line, with a description of the network as texts of their own."""
    if not pairs.get("network", "").strip().startswith("{"):
        return dict(pairs)
    values = expanded(pairs, observation_space)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}


def function_of(given: Mapping[str, Any]) -> Callable[[int], Any] | None:
    """The function that `network` is; None if it is something else."""
    network = given.get("network")
    return network if callable(network) else None
