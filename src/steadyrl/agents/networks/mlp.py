"""A network of dense layers with ReLU between them, as plain arrays: for JAX to learn and for NumPy to act with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.memory import check_memory

COPIES = 8
"""Of the parameters in memory: themselves, a gradient and Adam's two moments, of a policy and of values or targets."""

Layers = list[dict[str, Any]]
"""For each layer its `weight` [in, out] and `bias` [out]."""


@dataclass(frozen=True)
class MLP:
    """Sizes from the input to the output, such as (8, 128, 128, 4)."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = sum((inputs + 1) * outputs for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True))
        check_memory("hidden", self.sizes[1:-1], 4.0 * COPIES * numbers)

    def init(self, key: Array, output_scale: float = 1.0) -> Layers:
        """Weights and biases uniform within 1 / sqrt(inputs) of 0, as PyTorch draws them; the last times a scale."""
        layers = []
        for k_layer, inputs, outputs in zip(
            jax.random.split(key, len(self.sizes) - 1), self.sizes[:-1], self.sizes[1:], strict=True
        ):
            k_weight, k_bias = jax.random.split(k_layer)
            bound = inputs**-0.5
            weight = jax.random.uniform(k_weight, (inputs, outputs), minval=-bound, maxval=bound)
            bias = jax.random.uniform(k_bias, (outputs,), minval=-bound, maxval=bound)
            layers.append({"weight": weight, "bias": bias})
        layers[-1] = {name: output_scale * numbers for name, numbers in layers[-1].items()}
        return layers

    def __call__(self, layers: Layers, x: Array) -> Array:
        """[..., inputs] to [..., outputs]."""
        *hidden, last = layers
        # As one matrix: with more axes the gradient of the weights would be a quarter slower.
        rows = x.reshape(-1, x.shape[-1])
        for layer in hidden:
            rows = jax.nn.relu(rows @ layer["weight"] + layer["bias"])
        outputs: Array = rows @ last["weight"] + last["bias"]
        return outputs.reshape(*x.shape[:-1], -1)

    def apply_numpy(self, layers: Layers, x: Any) -> Any:
        """The same of [k, inputs], in place where it can be: this runs once for every step of the environment."""
        *hidden, last = layers
        for layer in hidden:
            x = x @ layer["weight"]
            x += layer["bias"]
            np.maximum(x, 0, out=x)
        x = x @ last["weight"]
        x += last["bias"]
        return x

    def with_input_fixed(self, layers: Layers, place: int, value: float) -> Layers:
        """The layers of a network without the input `place`, which computes what this one does with `value` there."""
        first, *others = layers
        weight = jnp.delete(first["weight"], place, axis=0)
        return [{"weight": weight, "bias": first["bias"] + value * first["weight"][place]}, *others]


@dataclass(frozen=True)
class ValueNetwork:
    """V(s) by an `MLP` with one output."""

    mlp: MLP

    def init(self, key: Array) -> Layers:
        """Parameters to start from."""
        return self.mlp.init(key)

    def __call__(self, parameters: Layers, observations: Array | None) -> Array:
        """[..., inputs] to [...]."""
        assert observations is not None, "only tables have a value for every state"
        return jnp.squeeze(self.mlp(parameters, observations), axis=-1)

    def at_level(self, parameters: Layers, level: float) -> Layers:
        """The parameters without the last input, which is a level."""
        return self.mlp.with_input_fixed(parameters, -1, level)
