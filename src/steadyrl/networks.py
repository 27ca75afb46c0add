"""Policies and value functions: the shapes that agents learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

Parameters = Any


class Policy(Protocol):
    """A distribution over actions for each observation. Implementations are frozen and hashable."""

    def init(self, key: Array) -> Parameters:
        """Parameters to start from."""
        ...

    def log_prob(self, parameters: Parameters, observations: Array | None, actions: Array | None) -> Array:
        """Log pi of P actions at each observation: [..., L] and [..., L, P] to [..., L, P].

        None in place of both is for tables alone and means all of it: [S, A].
        """
        ...

    def probabilities(self, parameters: Parameters) -> Array:
        """[..., S, A]: the whole table of a tabular policy."""
        ...


class Value(Protocol):
    """A number for each observation. Implementations are frozen and hashable."""

    def init(self, key: Array) -> Parameters:
        """Parameters to start from."""
        ...

    def __call__(self, parameters: Parameters, observations: Array | None) -> Array:
        """The value of each observation, elementwise over the leading axes; None is for tables: [S]."""
        ...


@dataclass(frozen=True)
class SoftmaxTable:
    """pi(a|s) = softmax of theta[s], the paper's one-hot features. Starts as the uniform policy."""

    n_states: int
    n_actions: int

    def init(self, key: Array) -> Array:
        """All zeros: every action equally likely."""
        return jnp.zeros((self.n_states, self.n_actions))

    def log_prob(self, parameters: Array, observations: Array | None, actions: Array | None) -> Array:
        """Log pi(a|s) for each state and each of its actions."""
        table = jax.nn.log_softmax(parameters)
        return table if observations is None else table[observations[..., None], actions]

    def probabilities(self, parameters: Array) -> Array:
        """The whole table [..., S, A]."""
        return jax.nn.softmax(parameters)


@dataclass(frozen=True)
class ValueTable:
    """V(s) = omega[s], the paper's one-hot features. Starts at 0."""

    n_states: int

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros(self.n_states)

    def __call__(self, parameters: Array, observations: Array | None) -> Array:
        """V(s) for each state."""
        return parameters if observations is None else parameters[observations]
