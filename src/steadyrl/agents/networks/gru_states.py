"""The hidden states of a gated recurrent unit along whole episodes, with a gradient whose loop over time is small.

Differentiated as it is written, the loop would add to the gradient of all weights in every step, and compute in small
products what can be large ones over all steps. Here each direction in time has one small product a step.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def next_state(state: Any, entering: Any, weight: Any, bias: Any) -> Any:
    """The state [..., H] after one more step, with what enters the gates [..., 3 H]; in NumPy or in JAX.

    reset and update are sigmoids, candidate = tanh(x + reset * (h U + b)), h' = update * h + (1 - update) * candidate.
    """
    _, update, candidate, _ = _gates(state, entering, weight, bias)
    return candidate + update * (state - candidate)


def _gates(state: Any, entering: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any, Any]:
    """Reset, update, the candidate, and what of the state enters the candidate if nothing is reset."""
    xp, H = jnp if isinstance(state, jax.Array) else np, state.shape[-1]
    recalled = state @ weight
    # A sigmoid by tanh: exp would overflow, of which NumPy warns.
    gates = 0.5 * xp.tanh(0.5 * (entering[..., : 2 * H] + recalled[..., : 2 * H])) + 0.5
    reset, update, into_candidate = gates[..., :H], gates[..., H:], recalled[..., 2 * H :] + bias
    return reset, update, xp.tanh(entering[..., 2 * H :] + reset * into_candidate), into_candidate


@jax.custom_vjp
def gru_states(entering: Array, weight: Array, bias: Array) -> Array:
    """[T, ..., H]: the states after each step, from zeros on, with what enters the gates [T, ..., 3 H]."""

    def step(state: Array, entering: Array) -> tuple[Array, Array]:
        state = next_state(state, entering, weight, bias)
        return state, state

    start = jnp.zeros((*entering.shape[1:-1], len(weight)), entering.dtype)
    return jax.lax.scan(step, start, entering)[1]


def _forward(entering: Array, weight: Array, bias: Array) -> tuple[Array, Any]:
    states = gru_states(entering, weight, bias)
    return states, (entering, weight, bias, states)


def _backward(saved: Any, by_states: Array) -> tuple[Array, Array, Array]:
    """The gradient with respect to the arguments of `gru_states`, given that with respect to its states."""
    entering, weight, bias, states = saved
    before = jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])
    reset, update, candidate, into_candidate = _gates(before, entering, weight, bias)
    # What enters each gate, per unit of the state after the step.
    to_candidate = (1 - update) * (1 - candidate**2)
    to_reset = to_candidate * into_candidate * reset * (1 - reset)
    to_update = (before - candidate) * update * (1 - update)
    recalled = jnp.concatenate([to_reset, to_update, to_candidate * reset], axis=-1)

    def step(after: Array, given: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        by_state, update, recalled = given
        total = by_state + after
        return total * update + (jnp.tile(total, 3) * recalled) @ weight.T, total

    _, total = jax.lax.scan(step, jnp.zeros_like(states[0]), (by_states, update, recalled), reverse=True)
    by_recalled = (jnp.tile(total, 3) * recalled).reshape(-1, weight.shape[1])
    by_entering = jnp.concatenate([total * to_reset, total * to_update, total * to_candidate], axis=-1)
    by_weight = before.reshape(-1, len(weight)).T @ by_recalled
    return by_entering, by_weight, by_recalled[:, 2 * len(weight) :].sum(axis=0)


gru_states.defvjp(_forward, _backward)
