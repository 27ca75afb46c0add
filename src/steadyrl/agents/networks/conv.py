"""Convolutions for images: the network of Mnih et al. (2015), for JAX to learn and for NumPy to act with.

A convolution is a product of matrices: of the patches of an image with the weights. Patches are made by the same lines
in NumPy and in JAX. XLA's own convolution would be slower inside of loops on a CPU, and NumPy has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.agents.networks.mlp import MLP, Layers, initial_layer
from steadyrl.envs.images import Image

NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Of each convolution the number of filters, the side of a filter and its stride."""
CHUNK = 16
"""Images at a time: their patches fit into a cache, those of a whole batch would not even fit into memory."""


@dataclass(frozen=True)
class ConvNetwork:
    """Convolutions of each image, then dense layers, which also see all other inputs.

    Inputs are rows of numbers: images are where `images` say, and whatever follows them is left as it is.
    """

    images: tuple[Image, ...]
    inputs: int
    dense: MLP
    """From the outputs of the convolutions, and then the other inputs, to the outputs."""
    takes_bytes: bool
    """Whether pixels are from 0 to 255 rather than from 0 to 1."""

    @classmethod
    def of(
        cls,
        images: tuple[Image, ...],
        inputs: int,
        hidden: tuple[int, ...],
        outputs: int,
        takes_bytes: bool,
        **options: Any,
    ) -> ConvNetwork:
        """With so many `inputs` in all; `options` are those of `MLP`."""
        others = inputs - sum(image.size for image in images)
        features = sum(math.prod(_sides(image)[-1]) * NATURE[-1][0] for image in images) + others
        return cls(images, inputs, MLP((features, *hidden, outputs), **options), takes_bytes)

    @property
    def outputs(self) -> int:
        """See `Network`."""
        return self.dense.outputs

    @cached_property
    def _others(self) -> Any:
        """Where the inputs are that are no pixels."""
        own = np.ones(self.inputs, bool)
        for image in self.images:
            own[image.start : image.start + image.size] = False
        return np.flatnonzero(own)

    def init(self, key: Array, output_scale: float = 1.0) -> Layers:
        """Three convolutions for each image, then the dense layers."""
        k_convolutions, k_dense = jax.random.split(key)
        layers: Layers = []
        for i, image in enumerate(self.images):
            channels = image.channels
            for j, (filters, side, _) in enumerate(NATURE):
                k_layer = jax.random.fold_in(k_convolutions, len(NATURE) * i + j)
                shape = (side, side, channels, filters)
                layer = initial_layer(k_layer, shape, side * side * channels, self.dense.orthogonal)
                gain = 2**0.5 if self.dense.orthogonal else 1.0
                layers.append({**layer, "weight": gain * layer["weight"]})
                channels = filters
        return [*layers, *self.dense.init(k_dense, output_scale)]

    def __call__(self, layers: Layers, x: Array) -> Array:
        """[..., inputs] to [..., outputs]."""
        return self.dense(self._split(layers)[1], self._seen(layers, x))

    @property
    def width(self) -> int:
        """See `Network`."""
        return self.dense.width

    def features(self, layers: Layers, x: Array) -> Array:
        """See `Network`."""
        return self.dense.features(self._split(layers)[1], self._seen(layers, x))

    def _seen(self, layers: Layers, x: Array) -> Array:
        """[..., dense inputs]: what the dense layers see."""
        seen = in_chunks(partial(self._features, self._split(layers)[0]), x.reshape(-1, x.shape[-1]))
        return seen.reshape(*x.shape[:-1], -1)

    def apply_numpy(self, layers: Layers, x: Any) -> Any:
        """The same in NumPy."""
        rows = x.reshape(-1, x.shape[-1])
        convolutions, dense = self._split(layers)
        return self.dense.apply_numpy(dense, self._features(convolutions, rows)).reshape(*x.shape[:-1], -1)

    def _split(self, layers: Layers) -> tuple[Layers, Layers]:
        number = len(NATURE) * len(self.images)
        return layers[:number], layers[number:]

    def _features(self, convolutions: Layers, rows: Any) -> Any:
        """[k, features]: what the convolutions see in each image, and the other inputs."""
        xp = jnp if isinstance(rows, jax.Array) else np
        parts = []
        for i, image in enumerate(self.images):
            x = image.channels_last(rows).astype(np.float32)
            x = x / np.float32(255) if self.takes_bytes else x
            for layer, (_, _, stride) in zip(convolutions[len(NATURE) * i :], NATURE, strict=False):
                x = xp.maximum(convolve(x, layer["weight"], stride) + layer["bias"], 0)
            parts.append(x.reshape(len(rows), -1))
        if self._others.size:
            parts.append(rows[:, self._others].astype(np.float32))
        return xp.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]

    def with_input_fixed(self, layers: Layers, place: int, value: float) -> Layers:
        """See `MLP`; `place` counts from the end, where there are no pixels."""
        convolutions, dense = self._split(layers)
        return [*convolutions, *self.dense.with_input_fixed(dense, place, value)]


def in_chunks(function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` of arrays [k, ...], to [k, outputs], of some rows at a time."""
    k = len(arrays[0])
    if k <= CHUNK:
        return function(*arrays)
    chunks, rest = divmod(k, CHUNK)
    whole = [x[: chunks * CHUNK].reshape(chunks, CHUNK, *x.shape[1:]) for x in arrays]
    # Checkpointed: what is computed in between is computed again for the gradient, not kept.
    of_chunk = jax.checkpoint(function)
    results = jax.lax.map(lambda parts: of_chunk(*parts), whole).reshape(chunks * CHUNK, -1)
    return jnp.concatenate([results, function(*(x[chunks * CHUNK :] for x in arrays))]) if rest else results


def convolve(images: Any, weight: Any, stride: int) -> Any:
    """[k, H, W, C] with [side, side, C, filters], without padding: [k, h, w, filters]. In NumPy or in JAX.

    With a side that is a multiple of the stride, pixels are first gathered into blocks of stride x stride, which are
    the pixels of a convolution with stride 1.
    """
    k, H, W, C = images.shape
    side, _, _, filters = weight.shape
    blocks = side // stride
    assert blocks * stride == side, "the side of a filter is a multiple of its stride"
    if stride > 1:
        H, W = H // stride, W // stride
        images = images[:, : H * stride, : W * stride].reshape(k, H, stride, W, stride, C)
        images = images.transpose(0, 1, 3, 2, 4, 5).reshape(k, H, W, stride * stride * C)
        weight = weight.reshape(blocks, stride, blocks, stride, C, filters).transpose(0, 2, 1, 3, 4, 5)
    h, w = H - blocks + 1, W - blocks + 1
    xp = jnp if isinstance(images, jax.Array) else np
    patches = xp.concatenate([images[:, i : i + h, j : j + w] for i in range(blocks) for j in range(blocks)], axis=-1)
    return (patches.reshape(k * h * w, -1) @ weight.reshape(-1, filters)).reshape(k, h, w, filters)


def _sides(image: Image) -> list[tuple[int, int]]:
    """Height and width after each convolution."""
    found, (height, width) = [], image.sides
    for _, side, stride in NATURE:
        height, width = (height - side) // stride + 1, (width - side) // stride + 1
        found.append((height, width))
    return found
