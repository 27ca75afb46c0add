"""What a risk measure is to an agent: a value, a utility, and the weights of its policy gradient.

An agent ascends E - lambda * measure, of undiscounted or of discounted returns. With score_i = sum_t grad log
pi(a_t | s_t) of trajectory i, `sum_i rho_i weight_i score_i` estimates the gradient of *minus* the measure, so an agent
adds it, times lambda; the divisor of the sum is part of the weights. One signature carries the four shapes there are:

- plain weights of the returns: Gini deviation, and most measures to come;
- two halves of a batch, split by position and so before any sorting: the variance by double sampling (MVO);
- running estimates, carried in `state`: Tamar's mean and variance;
- weights that include the mean part, `contains_mean`: MVP. The agent then adds nothing else, and no lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

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

    @property
    def mirrored(self) -> Law:
        """The law of -X."""
        return Law(-self.returns, self.probabilities)

    @property
    def noise(self) -> Any:
        """Differences between returns that are as small as this may be rounding errors."""
        return 8 * np.finfo(self.returns.dtype).eps * (abs(self.returns) * (self.probabilities > 0)).max()

    def centered(self, returns: Any) -> tuple[Any, Law]:
        """`returns` less E[X], and the law of X - E[X]; large returns that differ little keep their precision."""
        # From a return of the law: if all of its returns are equal, so are the differences, exactly.
        one = self.returns[self.probabilities.argmax()]
        differences = self.returns - one
        mean = self.probabilities @ differences
        return returns - one - mean, Law(differences - mean, self.probabilities)

    def quantile(self, level: Any) -> Any:
        """The smallest return that at least a share `level` of the returns does not exceed."""
        order = self.returns.argsort()
        ascending, F = self.returns[order], self.probabilities[order].cumsum()
        # A little less than the level: sums of probabilities in 32 bits may fall short of it.
        return ascending[(level * (1 - 1e-5) > F).sum().clip(max=ascending.size - 1)]


class Properties(NamedTuple):
    """What holds for a measure of any law of returns. Where a field is False, there is a counterexample."""

    location_invariant: bool
    """measure(X + c) = measure(X): it measures how returns differ, not how high they are."""
    degree: int | None
    """measure(c X) = c^degree measure(X) for all c > 0: positive homogeneity. None if it is not homogeneous."""
    sub_additive: bool
    """measure(X + Y) <= measure(X) + measure(Y)."""
    respects_convex_order: bool
    """A mean-preserving spread of the returns never lowers it."""

    @property
    def coherent(self) -> bool:
        """As a measure of variability (Furman et al. 2017), or as a risk measure if it is not location-invariant."""
        return self.degree == 1 and self.sub_additive


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
    properties: Properties | None = None
    """None for unknown."""


register_pytree(RiskMeasure)


@dataclass(frozen=True)
class ParametricMeasure:
    """A `Measure` of the law of returns alone that has a number of its own, such as the level of CVaR.

    A pytree whose leaf is the number: measures with other numbers share compiled programs.
    """

    parameter: str
    """What the number is called: "alpha" for levels, "beta" for a rate of risk aversion."""
    number: Leaf[float]
    value_at: Callable[[Any, Any], Any]
    """(returns, number) -> the measure of a sample, over the last axis."""
    utility_at: Callable[[Any, Law, Any], Any]
    """(returns, law, number) -> `Utility`."""
    checked: Callable[[float], float]
    """The number, or a ValueError if it is out of range."""
    properties: Properties | None = None
    higher_is_better: bool = False
    """Whether people know it by minus the measure: CVaR, which is high where the worst returns are."""
    initial_state: Leaf[Any] = ()
    contains_mean: bool = False
    min_episodes: int = 3

    def at(self, number: float) -> ParametricMeasure:
        """The measure with another number; a ValueError if that is out of range."""
        return replace(self, number=float(self.checked(number)))

    def value(self, returns: Any, /) -> Any:
        """See `Measure`."""
        return self.value_at(returns, self.number)

    def utility(self, returns: Any, law: Law, /) -> Any:
        """See `Utility`."""
        return self.utility_at(returns, law, self.number)

    def weights(self, sample: Sample, state: Any, /) -> tuple[Any, Any]:
        """Those that follow from the utility."""
        return weights_from(self.utility)(sample, state)


register_pytree(ParametricMeasure)

LawMeasure = RiskMeasure | ParametricMeasure
"""A measure of the law of returns alone: it has a utility, which is all that credit by step needs."""


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


def from_utility(value: Callable[[Any], Any], utility: Utility, properties: Properties) -> RiskMeasure:
    """A measure whose weights follow from its utility."""
    return RiskMeasure(value, utility, weights_from(utility), min_episodes=3, properties=properties)
