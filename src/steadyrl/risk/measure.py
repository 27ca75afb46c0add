"""What a risk measure is to an agent: a value, a utility, and the weights of its policy gradient.

An agent ascends E[G0] - lambda * measure. With score_i = sum_t grad log pi(a_t | s_t) of trajectory i,
`sum_i rho_i weight_i score_i` estimates the gradient of *minus* the measure, so an agent adds it, times lambda;
the divisor of the sum is part of the weights. One signature carries the four shapes there are:

- plain weights of the returns: Gini deviation, and most measures to come;
- two halves of a batch, split by position and so before any sorting: the variance by double sampling (MVO);
- running estimates, carried in `state`: Tamar's mean and variance;
- weights that include the mean part, `contains_mean`: MVP. The agent then adds nothing else, and no lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from steadyrl.base.pytree import Leaf, register_pytree


class Order(NamedTuple):
    """The sorting of a batch by return. Sorting is slow and all updates on a batch share it."""

    ascending: Any
    """[n]: which return is the i-th smallest."""
    rank: Any
    """[n]: the place of each return among the sorted ones."""

    @classmethod
    def of(cls, returns: Any) -> Order:
        """The order along the last axis."""
        ascending = returns.argsort(axis=-1)
        return cls(ascending, ascending.argsort(axis=-1))


class Sample(NamedTuple):
    """What a measure may know of a batch of n trajectories."""

    returns: Any
    """R [n]: the discounted return of each."""
    ratios: Any
    """rho [n]: how much likelier each is under the current policy than under the one that sampled it."""
    where: Any
    """[n] bool: which are selected; the others weigh 0."""
    order: Order | None = None
    """The order of the returns, if it is known already."""

    @property
    def count(self) -> Any:
        """The number selected, as a float."""
        return self.where.sum(axis=-1).astype(self.returns.dtype)


class Law(NamedTuple):
    """A distribution of returns, as a batch of episodes knows it."""

    returns: Any
    """[m]."""
    probabilities: Any
    """[m]: of each, adding up to 1."""


Utility = Callable[[Any, Law], Any]
"""u: (returns [...], law) -> [...]: how an episode with such a return lowers the measure of the law, up to a constant.

It is minus the influence function of the measure: with the law held fixed, grad E[u(R)] is minus grad measure.
"""
Weights = Callable[[Sample, Any], tuple[Any, Any]]
"""(sample, state) -> the weight of each trajectory [n], and the new state; see `Measure.weights`."""


class Measure(Protocol):
    """What agents ask of a measure. Implementations are pytrees: their numbers are arguments of compiled programs."""

    @property
    def initial_state(self) -> Any:
        """What `weights` carries from one update to the next."""
        ...

    @property
    def contains_mean(self) -> bool:
        """Whether the weights ascend the mean as well."""
        ...

    @property
    def min_episodes(self) -> int:
        """The smallest batch the weights are defined for."""
        ...

    def value(self, returns: Any, /) -> Any:
        """The measure of a sample of returns, over the last axis."""
        ...

    def weights(self, sample: Sample, state: Any, /) -> tuple[Any, Any]:
        """The weight of each trajectory [n], and the new state; pure, and traceable by JAX."""
        ...


@dataclass(frozen=True)
class RiskMeasure:
    """A `Measure` of the law of returns alone, made of functions, without numbers of its own."""

    value: Callable[[Any], Any]
    utility: Utility
    weights: Weights
    initial_state: Leaf[Any] = ()
    contains_mean: bool = False
    min_episodes: int = 2


register_pytree(RiskMeasure)


def weights_from(utility: Utility) -> Weights:
    """Leave-one-out weights that follow from a utility: [u(R_i) - mean of u(R_j) over the others] / n.

    Both terms take the law of the others, each as likely as its ratio, so the baseline does not depend on trajectory i.
    """

    def weights(sample: Sample, state: Any) -> tuple[Any, Any]:
        R, n = jnp.asarray(sample.returns), sample.count
        mass = (1 - jnp.eye(R.size)) * sample.ratios * sample.where
        laws = Law(jnp.broadcast_to(R, mass.shape), mass / jnp.maximum(mass.sum(axis=-1, keepdims=True), 1e-9))
        of_all = jax.vmap(lambda law: utility(R, law))(laws)
        weight = jnp.diagonal(of_all) - (laws.probabilities * of_all).sum(axis=-1)
        return weight * sample.where / jnp.maximum(n, 1), state

    return weights
