"""A network of dense layers, as plain arrays: for JAX to learn and for NumPy to act with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.agents.networks.protocols import Network
from steadyrl.base.memory import check_memory

COPIES = 8
"""Of the parameters in memory: themselves, a gradient and Adam's two moments, of a policy and of values or targets."""

Layers = list[dict[str, Any]]
"""For each layer its `weight` [in, out] and `bias` [out]; with layer normalization also a `scale` and a `shift`."""


class Activation(NamedTuple):
    """A function between layers, in JAX and in NumPy."""

    jax: Callable[[Array], Array]
    numpy: Callable[[Any], Any]


ACTIVATIONS = {
    "relu": Activation(jax.nn.relu, lambda x: np.maximum(x, 0)),
    "tanh": Activation(jnp.tanh, np.tanh),
    "elu": Activation(jax.nn.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "silu": Activation(jax.nn.silu, lambda x: x * (0.5 * (1 + np.tanh(0.5 * x)))),
}
"""Name -> function."""


@dataclass(frozen=True)
class MLP:
    """Sizes from the input to the output, such as (8, 128, 128, 4), and what is between layers."""

    sizes: tuple[int, ...]
    activation: str = "relu"
    layer_norm: bool = False
    """Whether what enters an activation has mean 0 and variance 1, times a learned scale, plus a learned shift."""
    orthogonal: bool = False
    """Whether weights start orthogonal, times sqrt(2) in hidden layers, and biases at 0, as in Stable-Baselines3's PPO;
    else as PyTorch draws them."""
    pixels: int = 0
    """How many of the inputs, the first, are bytes from 0 to 255, which are scaled to 1."""

    def __post_init__(self) -> None:
        numbers = sum((inputs + 1) * outputs for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True))
        check_memory("hidden", self.sizes[1:-1], 4.0 * COPIES * numbers)

    @property
    def inputs(self) -> int:
        """See `Network`."""
        return self.sizes[0]

    @property
    def outputs(self) -> int:
        """See `Network`."""
        return self.sizes[-1]

    @property
    def takes_bytes(self) -> bool:
        """See `Network`."""
        return self.pixels > 0

    def init(self, key: Array, output_scale: float = 1.0) -> Layers:
        """Weights and biases uniform within 1 / sqrt(inputs) of 0, or orthogonal; the last times a scale."""
        layers: Layers = []
        for k_layer, inputs, outputs in zip(
            jax.random.split(key, len(self.sizes) - 1), self.sizes[:-1], self.sizes[1:], strict=True
        ):
            layers.append(initial_layer(k_layer, (inputs, outputs), inputs, self.orthogonal))
        if self.orthogonal:
            layers = [{**layer, "weight": 2**0.5 * layer["weight"]} for layer in layers[:-1]] + layers[-1:]
        if self.layer_norm:
            layers = [{**layer, "scale": jnp.ones(n), "shift": jnp.zeros(n)} for layer, n in self._hidden(layers)] + [
                layers[-1]
            ]
        layers[-1] = {name: output_scale * numbers for name, numbers in layers[-1].items()}
        return layers

    def _hidden(self, layers: Layers) -> Any:
        return zip(layers[:-1], self.sizes[1:-1], strict=True)

    def __call__(self, layers: Layers, x: Array) -> Array:
        """[..., inputs] to [..., outputs]."""
        outputs: Array = self._rows(layers, x) @ layers[-1]["weight"] + layers[-1]["bias"]
        return outputs.reshape(*x.shape[:-1], -1)

    @property
    def width(self) -> int:
        """See `Network`."""
        return self.sizes[-2]

    def features(self, layers: Layers, x: Array) -> Array:
        """See `Network`."""
        return self._rows(layers, x).reshape(*x.shape[:-1], -1)

    def _rows(self, layers: Layers, x: Array) -> Array:
        """[n, width]: what enters the last layer."""
        # As one matrix: with more axes the gradient of the weights would be a quarter slower.
        rows = x.reshape(-1, x.shape[-1])
        if self.pixels:
            rows = scaled_pixels(rows, self.pixels)
        activation = ACTIVATIONS[self.activation].jax
        for layer in layers[:-1]:
            rows = activation(self._normalized(layer, rows @ layer["weight"] + layer["bias"]))
        return rows

    def apply_numpy(self, layers: Layers, x: Any) -> Any:
        """The same of [..., inputs], in place where it can be: this runs once for every step of the environment."""
        *hidden, last = layers
        if self.pixels:
            x = scaled_pixels(x, self.pixels)
        plain = self.activation == "relu" and not self.layer_norm
        for layer in hidden:
            x = x @ layer["weight"]
            x += layer["bias"]
            if plain:
                np.maximum(x, 0, out=x)
            else:
                x = ACTIVATIONS[self.activation].numpy(self._normalized(layer, x))
        x = x @ last["weight"]
        x += last["bias"]
        return x

    def _normalized(self, layer: dict[str, Any], x: Any) -> Any:
        """`x` itself, or with layer normalization, in NumPy or in JAX."""
        if not self.layer_norm:
            return x
        centered = x - x.mean(axis=-1, keepdims=True)
        variance = (centered**2).mean(axis=-1, keepdims=True)
        return centered * (variance + np.float32(1e-6)) ** -0.5 * layer["scale"] + layer["shift"]

    def with_input_fixed(self, layers: Layers, place: int, value: float) -> Layers:
        """The layers of a network without the input `place`, which computes what this one does with `value` there."""
        first, *others = layers
        weight = jnp.delete(first["weight"], place, axis=0)
        return [{**first, "weight": weight, "bias": first["bias"] + value * first["weight"][place]}, *others]


def initial_layer(key: Array, shape: tuple[int, ...], inputs: int, orthogonal: bool) -> dict[str, Array]:
    """A weight of some shape, whose last axis is that of the outputs, and a bias; each output has so many `inputs`."""
    if orthogonal:
        weight = jax.nn.initializers.orthogonal()(key, (inputs, shape[-1]), jnp.float32).reshape(shape)
        return {"weight": weight, "bias": jnp.zeros(shape[-1])}
    k_weight, k_bias = jax.random.split(key)
    bound = inputs**-0.5
    weight = jax.random.uniform(k_weight, shape, minval=-bound, maxval=bound)
    return {"weight": weight, "bias": jax.random.uniform(k_bias, shape[-1:], minval=-bound, maxval=bound)}


def scaled_pixels(x: Any, pixels: int) -> Any:
    """`x` [..., inputs] in 32 bits with its first numbers, bytes from 0 to 255, from 0 to 1; in NumPy or in JAX."""
    image = x[..., :pixels].astype(np.float32) / np.float32(255)
    if pixels == x.shape[-1]:
        return image
    xp = jnp if isinstance(x, jax.Array) else np
    return xp.concatenate([image, x[..., pixels:]], axis=-1)


@dataclass(frozen=True)
class ValueNetwork:
    """V(s) by a network with one output."""

    mlp: Network

    def init(self, key: Array) -> Any:
        """Parameters to start from."""
        return self.mlp.init(key)

    def __call__(self, parameters: Any, observations: Array | None) -> Array:
        """[..., inputs] to [...]."""
        assert observations is not None, "only tables have a value for every state"
        return jnp.squeeze(self.mlp(parameters, observations), axis=-1)

    def at_level(self, parameters: Any, level: float) -> Any:
        """The parameters without the last input, which is a level."""
        return self.mlp.with_input_fixed(parameters, -1, level)
