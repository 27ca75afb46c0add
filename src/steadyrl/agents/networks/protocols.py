"""What agents ask of a policy and of a value function."""

from __future__ import annotations

from typing import Any, Protocol

from jax import Array

from steadyrl.rollouts.acting import NumpyPolicy

Parameters = Any


class Policy(NumpyPolicy, Protocol):
    """A distribution over actions for each observation, to learn in JAX. Implementations are frozen and hashable."""

    def init(self, key: Array) -> Parameters:
        """Parameters to start from."""
        ...

    def log_prob(self, parameters: Parameters, observations: Any, actions: Array | None) -> Array:
        """Log pi of P actions at each observation: [..., L] and [..., L, P] to [..., L, P].

        None in place of both is for tables alone and means all of it: [S, A]; `EveryState` [n] is for tables with a
        dial, and means [n, S, A].
        """
        ...

    def log_prob_and_entropy(
        self, parameters: Parameters, observations: Any, actions: Array | None
    ) -> tuple[Array, Array]:
        """`log_prob`, and the entropy of the policy at each observation, [..., L]: both from one pass."""
        ...


class Value(Protocol):
    """A number for each observation. Implementations are frozen and hashable."""

    def init(self, key: Array) -> Parameters:
        """Parameters to start from."""
        ...

    def __call__(self, parameters: Parameters, observations: Any) -> Array:
        """The value of each observation, elementwise over the leading axes; None is for tables: [S].

        `EveryState` is for tables with a dial.
        """
        ...
