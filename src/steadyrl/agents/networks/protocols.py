"""What agents ask of a policy and of a value function."""

from __future__ import annotations

from typing import Any, Protocol

from jax import Array

from steadyrl.rollouts.acting import NumpyPolicy

Parameters = Any


class Network(Protocol):
    """A function of rows of numbers, to learn in JAX and to act with in NumPy. Implementations are frozen and hashable.

    Parameters are a list of layers, of which the last is linear, with a `weight` [in, outputs] and a `bias` [outputs].
    """

    @property
    def inputs(self) -> int:
        """How many numbers a row has."""
        ...

    @property
    def outputs(self) -> int:
        """How many numbers come out."""
        ...

    @property
    def takes_bytes(self) -> bool:
        """Whether observations are bytes from 0 to 255, which the network scales."""
        ...

    def init(self, key: Array, output_scale: float = 1.0) -> Any:
        """Parameters to start from; those of the last layer times a scale."""
        ...

    def __call__(self, layers: Any, x: Array) -> Array:
        """[..., inputs] to [..., outputs]."""
        ...

    @property
    def width(self) -> int:
        """How many numbers enter the last layer."""
        ...

    def features(self, layers: Any, x: Array) -> Array:
        """[..., inputs] to [..., width]: what enters the last layer."""
        ...

    def apply_numpy(self, layers: Any, x: Any) -> Any:
        """The same in NumPy."""
        ...

    def with_input_fixed(self, layers: Any, place: int, value: float) -> Any:
        """The parameters of a network without the input `place` that computes what this one does with `value` there."""
        ...


class Policy(NumpyPolicy, Protocol):
    """A distribution over actions for each observation, to learn in JAX. Implementations are frozen and hashable."""

    def init(self, key: Array) -> Parameters:
        """Parameters to start from."""
        ...

    def log_prob(
        self, parameters: Parameters, observations: Any, actions: Array | None, masks: Array | None = None
    ) -> Array:
        """Log pi of P actions at each observation: [..., L] and [..., L, P] to [..., L, P].

        With `masks` [..., L, A], of the distribution over the actions that are allowed.

        None in place of both is for tables alone and means all of it: [S, A]; `EveryState` [n] is for tables with a
        dial, and means [n, S, A].
        """
        ...

    def log_prob_and_entropy(
        self, parameters: Parameters, observations: Any, actions: Array | None, masks: Array | None = None
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
