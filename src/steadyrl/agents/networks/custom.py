"""Networks of users: a function makes all layers but the last, which is always linear and ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.agents.networks.mlp import initial_layer, scaled_pixels
from steadyrl.base.shown import shown

TOLERANCE = 1e-3
"""By which JAX and NumPy may differ, relative to the largest output."""


class Body(Protocol):
    """What the function returns for a number of inputs. Hashable, as objects of Python are by default."""

    outputs: int
    """How many numbers come out: the inputs of our last layer."""

    def init(self, key: Array) -> Any:
        """Parameters to start from: arrays in lists, tuples or dictionaries."""
        ...

    def apply(self, parameters: Any, x: Array) -> Array:
        """[n, inputs] to [n, outputs] in JAX, to learn."""
        ...

    def apply_numpy(self, parameters: Any, x: Any) -> Any:
        """The same in NumPy, to act."""
        ...


@dataclass(frozen=True)
class CustomNetwork:
    """A `Network` with a body of a user's."""

    body: Any
    inputs: int
    outputs: int
    pixels: int
    """How many of the inputs, the first, are bytes, which the body gets from 0 to 1."""

    @classmethod
    def of(cls, function: Callable[[int], Any], inputs: int, outputs: int, pixels: int) -> CustomNetwork:
        """With what the function makes, once it was tried."""
        body = function(inputs)
        for name in ("outputs", "init", "apply", "apply_numpy"):
            if not hasattr(body, name):
                raise ValueError(
                    f"network: the function returned {shown(body, 40)} without {name!r}. Return an object with "
                    "outputs, init(key), apply(parameters, x) and apply_numpy(parameters, x)."
                )
        _check(body, inputs)
        return cls(body, inputs, outputs, pixels)

    @property
    def takes_bytes(self) -> bool:
        """See `Network`."""
        return self.pixels > 0

    def init(self, key: Array, output_scale: float = 1.0) -> list[Any]:
        """The parameters of the body, and the last layer."""
        k_body, k_last = jax.random.split(key)
        last = initial_layer(k_last, (self.body.outputs, self.outputs), self.body.outputs, orthogonal=False)
        return [self.body.init(k_body), {name: output_scale * numbers for name, numbers in last.items()}]

    def __call__(self, layers: list[Any], x: Array) -> Array:
        """[..., inputs] to [..., outputs]."""
        outputs: Array = self.features(layers, x) @ layers[1]["weight"] + layers[1]["bias"]
        return outputs

    @property
    def width(self) -> int:
        """See `Network`."""
        return int(self.body.outputs)

    def features(self, layers: list[Any], x: Array) -> Array:
        """See `Network`."""
        seen: Array = self.body.apply(layers[0], self._rows(x))
        return seen.reshape(*x.shape[:-1], -1)

    def apply_numpy(self, layers: list[Any], x: Any) -> Any:
        """The same in NumPy."""
        body, last = layers
        outputs = self.body.apply_numpy(body, self._rows(x)) @ last["weight"] + last["bias"]
        return outputs.reshape(*x.shape[:-1], -1)

    def _rows(self, x: Any) -> Any:
        rows = x.reshape(-1, x.shape[-1])
        return scaled_pixels(rows, self.pixels) if self.pixels else rows

    def with_input_fixed(self, layers: list[Any], place: int, value: float) -> list[Any]:
        """There is no such network: only its author knows how inputs enter."""
        raise NotImplementedError


def _check(body: Any, inputs: int) -> None:
    """An error if shapes are wrong, or if NumPy computes something else than JAX."""
    rows = np.linspace(-1, 1, 2 * inputs, dtype=np.float32).reshape(2, inputs)
    parameters = body.init(jax.random.key(0))
    learned = np.asarray(body.apply(parameters, jnp.asarray(rows)))
    acted = np.asarray(body.apply_numpy(jax.tree.map(np.asarray, parameters), rows))
    for name, found in (("apply", learned), ("apply_numpy", acted)):
        if found.shape != (2, body.outputs):
            raise ValueError(
                f"network: {name} of [2, {inputs}] has shape {found.shape}, and outputs={body.outputs}. "
                f"Return [2, {body.outputs}]."
            )
    if not np.allclose(learned, acted, rtol=0, atol=TOLERANCE * max(1.0, float(np.abs(learned).max()))):
        raise ValueError(
            f"network: apply and apply_numpy differ by up to {np.abs(learned - acted).max():.3g} for the same inputs. "
            "Compute the same in both."
        )
