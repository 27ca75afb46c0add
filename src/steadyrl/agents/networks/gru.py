"""A recurrent network: dense layers, then a gated recurrent unit (Cho et al. 2014), in the form that PyTorch has.

It maps the observations of whole episodes, in order, to outputs that depend on all observations so far. While episodes
are played, what it knows of the past is a hidden state, which is zeros at the start of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.agents.networks.gru_states import gru_states, next_state
from steadyrl.agents.networks.mlp import COPIES, MLP, Layers, initial_layer
from steadyrl.base.memory import check_memory

GATES = 3
"""Reset, update, and the candidate for the next state, as `gru_states` has them."""


@dataclass(frozen=True)
class GRU:
    """A `Network` of sequences: [..., T, inputs] to [..., T, outputs], each from a state of zeros.

    Its layers are those of `dense`, the recurrent one, and the last one.
    """

    dense: MLP
    """To what enters the three gates, [..., 3 * width]; its last layer has the input weights of the GRU."""
    width: int
    outputs: int

    @classmethod
    def of(cls, inputs: int, hidden: tuple[int, ...], outputs: int, **options: Any) -> GRU:
        """The last of the `hidden` layers is the GRU, those before it are dense; `options` are those of `MLP`."""
        *before, width = hidden
        check_memory("hidden", hidden, 4.0 * COPIES * GATES * width * (width + 1))
        return cls(MLP((inputs, *before, GATES * width), **options), width, outputs)

    @property
    def inputs(self) -> int:
        """See `Network`."""
        return self.dense.inputs

    @property
    def takes_bytes(self) -> bool:
        """See `Network`."""
        return self.dense.takes_bytes

    @property
    def state_size(self) -> int:
        """How many numbers the hidden state has."""
        return self.width

    def init(self, key: Array, output_scale: float = 1.0) -> Layers:
        """As `MLP`; the recurrent weights of each gate on its own."""
        k_dense, k_last, *k_gates = jax.random.split(key, 2 + GATES)
        orthogonal, shape = self.dense.orthogonal, (self.width, self.width)
        gates = [initial_layer(k, shape, self.width, orthogonal) for k in k_gates]
        recurrent = {"weight": jnp.concatenate([gate["weight"] for gate in gates], axis=1), "bias": gates[-1]["bias"]}
        last = initial_layer(k_last, (self.width, self.outputs), self.width, orthogonal)
        return [*self.dense.init(k_dense), recurrent, {name: output_scale * x for name, x in last.items()}]

    def __call__(self, layers: Layers, x: Array) -> Array:
        """[..., T, inputs] to [..., T, outputs]."""
        outputs: Array = self.features(layers, x) @ layers[-1]["weight"] + layers[-1]["bias"]
        return outputs

    def features(self, layers: Layers, x: Array) -> Array:
        """[..., T, inputs] to [..., T, width]: the states after each observation, which enter the last layer."""
        *dense, recurrent, _ = layers
        # All that does not depend on the state is one product over all steps.
        entering = jnp.moveaxis(self.dense(dense, x), -2, 0)
        return jnp.moveaxis(gru_states(entering, recurrent["weight"], recurrent["bias"]), 0, -2)

    def step_numpy(self, layers: Layers, x: Any, state: Any) -> tuple[Any, Any]:
        """One step in NumPy: from [..., inputs] and the state [..., width] to outputs, and the next state."""
        *dense, recurrent, last = layers
        state = next_state(state, self.dense.apply_numpy(dense, x), recurrent["weight"], recurrent["bias"])
        outputs = state @ last["weight"]
        outputs += last["bias"]
        return outputs, state

    def apply_numpy(self, layers: Layers, x: Any) -> Any:
        """There is none: without its state, one observation does not determine an output."""
        raise TypeError("a recurrent network acts from a state, by step_numpy")

    def with_input_fixed(self, layers: Layers, place: int, value: float) -> Layers:
        """See `Network`."""
        *dense, recurrent, last = layers
        return [*self.dense.with_input_fixed(dense, place, value), recurrent, last]
