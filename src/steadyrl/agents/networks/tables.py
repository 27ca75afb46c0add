"""Tables: one row of parameters for each state, the paper's one-hot features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked


@dataclass(frozen=True)
class SoftmaxTable:
    """pi(a|s) = softmax of theta[s]. Starts as the uniform policy."""

    n_states: int
    n_actions: int
    takes_states: ClassVar[bool] = True
    """Observations are indices of states, not features."""

    def init(self, key: Array) -> Array:
        """All zeros: every action equally likely."""
        return jnp.zeros((self.n_states, self.n_actions))

    def log_prob(
        self, parameters: Array, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> Array:
        """Log pi(a|s) for each state and each of its actions."""
        return self.log_prob_and_entropy(parameters, observations, actions, masks)[0]

    def log_prob_and_entropy(
        self, parameters: Array, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> tuple[Array, Array]:
        """Also the entropy of each state's row."""
        if masks is not None:  # The same state may have other masks at other times.
            assert observations is not None
            assert actions is not None
            return of_rows(parameters[observations], actions, masks)
        table = jax.nn.log_softmax(parameters)
        entropy = -(jnp.exp(table) * table).sum(axis=-1)
        if observations is None:
            return table, entropy
        return table[observations[..., None], actions], entropy[observations]

    def probabilities(self, parameters: Array) -> Array:
        """The whole table [..., S, A]."""
        return jax.nn.softmax(parameters)

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """See `gumbel`."""
        return gumbel(generator, steps, self.n_actions)

    def jax_noise(self, key: Array) -> Array:
        """See `gumbel`."""
        return jax.random.gumbel(key, (self.n_actions,))

    def act(self, parameters: Any, observations: Any, noise: Any, masks: Any = None) -> Any:
        """An action for each state."""
        return draw(masked(parameters[observations], masks), noise)

    def act_jax(self, parameters: Array, observations: Array, noise: Array | None) -> Array:
        """An action for each state."""
        action: Array = draw(parameters[observations], noise)
        return action

    def to_space(self, actions: Any) -> Any:
        """As they are."""
        return actions


@dataclass(frozen=True)
class ProbabilityTable(SoftmaxTable):
    """A policy that is given as its table of probabilities, such as one that follows from action values."""

    def act(self, parameters: Any, observations: Any, noise: Any, masks: Any = None) -> Any:
        """An action for each state."""
        with np.errstate(divide="ignore"):
            return draw(masked(np.log(parameters[observations]), masks), noise)


class GreedyParams(NamedTuple):
    """What a `GreedyTable` acts by."""

    probabilities: Any
    """[S, A]."""
    values: Any
    """[S, A]."""
    epsilon: float
    """The share of actions that are any, equally likely."""


@dataclass(frozen=True)
class GreedyTable(ProbabilityTable):
    """A `ProbabilityTable` that follows from action values: where actions are masked, it follows from the others."""

    def act(self, parameters: GreedyParams, observations: Any, noise: Any, masks: Any = None) -> Any:
        """An action for each state."""
        if masks is None:
            return super().act(parameters.probabilities, observations, noise)
        values = masked(parameters.values[observations], masks)
        best = (values == values.max(axis=-1, keepdims=True)) & masks
        shares, epsilon = (x / x.sum(axis=-1, keepdims=True) for x in (best, masks)), parameters.epsilon
        of_best, of_any = shares
        with np.errstate(divide="ignore"):
            return draw(np.log((1 - epsilon) * of_best + epsilon * of_any), noise)


@dataclass(frozen=True)
class ValueTable:
    """V(s) = omega[s]. Starts at 0."""

    n_states: int

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros(self.n_states)

    def __call__(self, parameters: Array, observations: Array | None) -> Array:
        """V(s) for each state."""
        return parameters if observations is None else parameters[observations]


def gumbel(generator: np.random.Generator, steps: int, n_actions: int) -> NDArray[np.float32]:
    """[steps, A]: with it, the largest of log p_a + noise_a is a draw from p, which is quicker than a running sum."""
    return generator.gumbel(size=(steps, n_actions)).astype(np.float32)


def of_rows(rows: Array, actions: Array, masks: Array | None) -> tuple[Array, Array]:
    """Log pi of actions [..., P] and the entropy [...], from logits [..., A] of the actions that are allowed."""
    table = jax.nn.log_softmax(masked(rows, masks))
    return jnp.take_along_axis(table, actions, axis=-1), -(jnp.exp(table) * table).sum(axis=-1)


def draw(logits: Any, noise: Any) -> Any:
    """[k]: a draw from the softmax of `logits` [k, A], or its likeliest action."""
    return (logits if noise is None else logits + noise).argmax(axis=-1)
