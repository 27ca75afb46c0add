"""The parameters of a Stable-Baselines3 policy, as layers of ours."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Layers = list[dict[str, NDArray[np.float32]]]

ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "ELU": "elu", "SiLU": "silu"}
"""Torch's name of an activation -> ours."""


class Networks(NamedTuple):
    """What a model has learned, before scales of its observations, rewards and actions are part of it."""

    policy: Layers
    values: list[Layers]
    """PPO and A2C: V. TD3: both critics. DQN: none, as its policy is made of values."""
    targets: list[Layers]
    """Target networks: of DQN; of TD3 the policy's and both critics'."""
    log_std: NDArray[np.float32] | None
    activation: str

    @property
    def hidden(self) -> tuple[int, ...]:
        """The sizes of the hidden layers, which are those of all networks."""
        return _hidden(self.policy)


def read_networks(kind: str, policy: Any) -> Networks:
    """The networks of a model's `policy`; an error for one that consists of other things than dense layers."""
    state = _Parameters(kind, policy)
    if kind in ("PPO", "A2C"):
        networks = Networks(
            policy=state.layers("mlp_extractor.policy_net", "action_net"),
            values=[state.layers("mlp_extractor.value_net", "value_net")],
            targets=[],
            log_std=state.vector("log_std"),
            activation=state.activation,
        )
    elif kind == "DQN":
        learned, target = state.layers("q_net.q_net"), state.layers("q_net_target.q_net")
        networks = Networks(learned, [], [target], None, state.activation)
    else:
        critics, targets = ([state.layers(f"critic{end}.qf{k}") for k in range(2)] for end in ("", "_target"))
        targets = [state.layers("actor_target.mu"), *targets]
        networks = Networks(state.layers("actor.mu"), critics, targets, None, state.activation)
    state.check_all_read()
    for layers in networks.values:
        if _hidden(layers) != networks.hidden:
            raise ValueError(
                f"this {kind} has hidden layers {networks.hidden} for the policy and {_hidden(layers)} for values, and "
                "here both have the same. Train it with one net_arch for both."
            )
    return networks


def _hidden(layers: Layers) -> tuple[int, ...]:
    return tuple(layer["weight"].shape[1] for layer in layers[:-1])


class _Parameters:
    """The entries of a state_dict, of which all have to be used."""

    def __init__(self, kind: str, policy: Any) -> None:
        self._kind = kind
        self._arrays = {name: _array(value) for name, value in policy.state_dict().items()}
        self._unread = set(self._arrays)
        name = getattr(policy.activation_fn, "__name__", str(policy.activation_fn))
        if name not in ACTIVATIONS:
            raise ValueError(f"this {kind} has the activation {name}: known ones are {', '.join(ACTIVATIONS)}.")
        self.activation = ACTIVATIONS[name]

    def layers(self, *prefixes: str) -> Layers:
        """The dense layers under each prefix, in order; torch stores weights as [out, in]."""
        return [
            {"weight": np.ascontiguousarray(weight.T), "bias": self._take(name.removesuffix("weight") + "bias")}
            for prefix in prefixes
            for name, weight in self._weights(prefix)
        ]

    def vector(self, name: str) -> NDArray[np.float32] | None:
        """An array that there may be."""
        return self._take(name) if name in self._arrays else None

    def check_all_read(self) -> None:
        """An error if there are parameters that dense layers do not have."""
        if self._unread:
            name = min(self._unread)
            raise ValueError(
                f"this {self._kind} has parameters {name}, which networks of dense layers do not have: only MlpPolicy, "
                "without convolutions, state-dependent exploration and layers of your own, can be taken over."
            )

    def _weights(self, prefix: str) -> list[tuple[str, NDArray[np.float32]]]:
        pattern = re.compile(rf"{re.escape(prefix)}\.(?:(\d+)\.)?weight")
        found = [(match, name) for name in self._arrays if (match := pattern.fullmatch(name))]
        names = [name for match, name in sorted(found, key=lambda pair: int(pair[0][1] or 0))]
        if any(self._arrays[name].ndim != 2 for name in names) or (not names and "." not in prefix):
            raise ValueError(f"this {self._kind} has no dense layers {prefix}: only MlpPolicy can be taken over.")
        return [(name, self._take(name)) for name in names]

    def _take(self, name: str) -> NDArray[np.float32]:
        if name not in self._arrays:
            raise ValueError(f"this {self._kind} has no parameters {name}: only MlpPolicy can be taken over.")
        self._unread.discard(name)
        return self._arrays[name]


def _array(value: Any) -> NDArray[np.float32]:
    """A tensor of torch, on whatever device, as an array of its own."""
    return np.array(value.cpu() if hasattr(value, "cpu") else value, np.float32)
