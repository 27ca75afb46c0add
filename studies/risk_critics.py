"""Designs of a critic for the risk part, and the gradients that they give; for the study `risk_credit.py`.

Design b is the library's `RiskCritic` with `risk_gamma=1`: it learns the distribution of the return still to come.
Design c is b with the default `risk_gamma`, which discounts risk credit as advantages of the mean are. Design a, which
exists here alone, learns the expected utility itself, as a function of the state, the return so far and the time. All
see the same episodes, take the same number of steps of the same optimizer, and judge an episode by the same law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from steadyrl.agents.networks.mlp import MLP, Layers
from steadyrl.agents.networks.quantiles import HIDDEN, QuantileNetwork, QuantileTable
from steadyrl.agents.networks.running_scale import RECENT_EPISODES
from steadyrl.agents.risk_critic import CriticState, RiskCritic
from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk import gini_weights_unbiased
from steadyrl.training.batch import Steps
from steadyrl.training.minibatches import Minibatches
from steadyrl.training.returns import rewards_to_go

Floats = NDArray[np.float64]
DECAYS = (1.0, 0.95, 0.8, 0.0)
"""GAE's lambda."""
LAWS = ("batch", "remembered")
"""Episodes are compared with the others of their batch, or with these and with remembered returns."""


class Estimator(NamedTuple):
    """A way to estimate -grad D."""

    design: str
    law: str = "batch"
    decay: float = 1.0


DESIGNS = "abc"
LEAVE_ONE_OUT, REFERENCE = Estimator("none"), Estimator("b")
ESTIMATORS = (LEAVE_ONE_OUT, *(Estimator(design, law, decay) for law in LAWS for design in DESIGNS for decay in DECAYS))
"""In the order of `gradient_estimates`; `REFERENCE` is unbiased, as is the first."""


@dataclass(frozen=True)
class UtilityTable:
    """Expected utility given a state and a range of the return so far; the outermost ranges have no end."""

    n_states: int
    lowest: ClassVar[float] = -100.0
    width: ClassVar[float] = 4.0
    ranges: ClassVar[int] = 32  # Numbers for each state; design b has 8 quantiles.

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros((self.n_states, self.ranges))

    def __call__(self, parameters: Array, observations: Array, times: Array, so_far: Array, scaled: Array) -> Array:
        """[...] from [...] each."""
        k = jnp.floor((so_far - self.lowest) / self.width).clip(0, self.ranges - 1).astype(jnp.int32)
        return parameters[observations, k]


@dataclass(frozen=True)
class UtilityNetwork:
    """Expected utility given an observation, a time, and the return so far in standard deviations from its mean."""

    mlp: MLP

    def init(self, key: Array) -> Layers:
        """Parameters to start from."""
        return self.mlp.init(key)

    def __call__(self, parameters: Layers, observations: Array, times: Array, so_far: Array, scaled: Array) -> Array:
        """[...] from [..., inputs] and [...]."""
        numbers = jnp.stack([times, scaled], axis=-1)
        return self.mlp(parameters, jnp.concatenate([observations, numbers], axis=-1))[..., 0]


class UtilityState(NamedTuple):
    """What a `UtilityCritic` knows, from earlier batches alone."""

    parameters: Any
    optimiser: Any
    key: Array
    mean: Array  # [2]: of the return so far and of the utility, over the steps of recent episodes.
    mean_square: Array
    length: Array  # The mean length of recent episodes.
    episodes: Array

    @property
    def scale(self) -> Array:
        """[2]: standard deviations."""
        return jnp.sqrt(jnp.maximum(self.mean_square - self.mean**2, 1e-8))


@dataclass(frozen=True)
class UtilityCritic:
    """Design a. A pytree."""

    network: UtilityTable | UtilityNetwork
    twin: Leaf[RiskCritic]
    """Design b, whose laws of returns, learning rate, passes and minibatches it shares."""

    @classmethod
    def beside(cls, twin: RiskCritic) -> UtilityCritic:
        """For the same observations, with hidden layers of the same size."""
        if isinstance(twin.network, QuantileTable):
            return cls(UtilityTable(twin.network.n_states), twin)
        assert isinstance(twin.network, QuantileNetwork)
        return cls(UtilityNetwork(MLP((twin.network.mlp.sizes[0] + 1, *HIDDEN, 1))), twin)

    def init(self, key: Array) -> UtilityState:
        """An untrained critic."""
        k_network, k_order = jax.random.split(key)
        parameters, none = self.network.init(k_network), (jnp.zeros(2), jnp.ones(2), jnp.float32(1), jnp.float32(0))
        return UtilityState(parameters, self.twin.optimiser.init(parameters), k_order, *none)

    def advantages(self, state: UtilityState, law: CriticState, steps: Steps, decay: Array) -> Array:
        """[n, T]: how much each step lowered the measure; `law` knows the returns that are remembered."""
        final = self._utilities(law, steps)
        expected = state.mean[1] + state.scale[1] * self.network(state.parameters, *self._inputs(state, steps))
        following = jnp.concatenate([expected[:, 1:], jnp.zeros_like(expected[:, :1])], axis=-1)
        last = jnp.arange(steps.mask.shape[1]) == steps.mask.sum(axis=-1)[:, None] - 1
        changes = jnp.where(last, final[:, None], following) - expected
        credit: Array = rewards_to_go(changes * steps.mask, decay) * steps.mask
        return credit

    def fit(self, state: UtilityState, law: CriticState, steps: Steps) -> UtilityState:
        """The critic after learning from a batch, by as many steps as design b takes."""
        utilities = jnp.broadcast_to(self._utilities(law, steps)[:, None], steps.mask.shape)
        state = self._remember(state, steps, utilities)
        given = self._inputs(state, steps), (utilities - state.mean[1]) / state.scale[1]
        given, mask = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (given, steps.mask))
        size = min(self.twin.network.minibatch_size or mask.size, mask.size)

        def loss(parameters: Any, given: tuple[tuple[Array, ...], Array], weights: Array) -> Array:
            errors = (self.network(parameters, *given[0]) - given[1]) ** 2
            return (weights * errors).sum() / weights.sum()

        def step(carry: tuple[Any, Any], given: Any, weights: Array) -> tuple[Any, Any]:
            gradient = jax.grad(loss)(carry[0], given, weights)
            moves, optimiser = self.twin.optimiser.update(gradient, carry[1], carry[0])
            return optax.apply_updates(carry[0], moves), optimiser

        def one_pass(carry: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], None]:
            if size == mask.size:
                return step(carry, given, mask), None
            minibatches = Minibatches.of(key, mask, size)

            def on_part(k: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
                rows, within = minibatches.part(k, size)
                return step(carry, jax.tree.map(lambda x: x[rows], given), within)

            return jax.lax.fori_loop(0, minibatches.parts, on_part, carry), None

        k_next, *keys = jax.random.split(state.key, 1 + self.twin.network.passes)
        learned, _ = jax.lax.scan(one_pass, (state.parameters, state.optimiser), jnp.stack(keys))
        return state._replace(parameters=learned[0], optimiser=learned[1], key=k_next)

    def _utilities(self, law: CriticState, steps: Steps) -> Array:
        """[n]: u(R) of each episode, by the law of the others."""
        returns = steps.rewards.sum(axis=-1)
        utilities: Array = jax.vmap(self.twin.measure.utility)(returns, self.twin.laws_of_others(law, returns))
        return utilities

    def _inputs(self, state: UtilityState, steps: Steps) -> tuple[Array, ...]:
        times = jnp.broadcast_to(jnp.arange(steps.mask.shape[1]) / state.length, steps.mask.shape)
        so_far = _so_far(steps)
        return steps.observations, times, so_far, (so_far - state.mean[0]) / state.scale[0]

    def _remember(self, state: UtilityState, steps: Steps, utilities: Array) -> UtilityState:
        """The state with moments that include a batch, weighed as design b weighs it."""
        n = len(utilities)
        share = n / (jnp.minimum(state.episodes, RECENT_EPISODES) + n)
        both, weights = jnp.stack([_so_far(steps), utilities]), steps.mask / steps.mask.sum()

        new = (weights * both).sum(axis=(1, 2)), (weights * both**2).sum(axis=(1, 2)), steps.mask.sum() / n
        old = state.mean, state.mean_square, state.length
        mean, square, length = (before + share * (now - before) for before, now in zip(old, new, strict=True))
        return state._replace(mean=mean, mean_square=square, length=length, episodes=state.episodes + n)


register_pytree(UtilityCritic)


def _so_far(steps: Steps) -> Array:
    return jnp.cumsum(steps.rewards, axis=-1) - steps.rewards


class Critics(NamedTuple):
    """All designs, as far as they have learned. What b and c learn does not depend on the law; a is there twice."""

    a: UtilityCritic
    a_states: dict[str, UtilityState]  # For each of LAWS.
    b_state: CriticState
    c: RiskCritic
    c_state: CriticState

    @classmethod
    def untrained(cls, b: RiskCritic, b_state: CriticState, gamma: float, key: Array) -> Critics:
        """Before the first batch; c is b with that `risk_gamma`."""
        a, c = UtilityCritic.beside(b), replace(b, gamma=gamma)
        return cls(a, {law: a.init(key) for law in LAWS}, b_state, c, c.init(key))

    @jax.jit
    def fit(self, steps: Steps) -> Critics:
        """After a and c have learned from a batch; b learns with the agent."""
        states = {
            law: self.a.fit(state, self._with_law(self.b_state, law), steps) for law, state in self.a_states.items()
        }
        return self._replace(a_states=states, c_state=self.c.fit(self.c_state, steps)[0])

    def step_weights(self, steps: Steps) -> Array:
        """[E, n, T]: for each of ESTIMATORS, the weight of every log pi(a_t|s_t) in an estimate of -grad D."""
        returns, decays = steps.rewards.sum(axis=-1), jnp.array(DECAYS)
        n = returns.size
        credits = []
        for law in LAWS:
            of_a = jax.vmap(self.a.advantages, in_axes=(None, None, None, 0))
            credits.append(of_a(self.a_states[law], self._with_law(self.b_state, law), steps, decays))
            for critic, state in ((self.a.twin, self.b_state), (self.c, self.c_state)):
                known = self._with_law(state, law)
                # As the agent does it: GAE's lambda times gamma.
                credit = jax.vmap(
                    lambda decay, c=critic, s=known: replace(c, decay=decay * c.gamma).advantages(s, steps)
                )
                credits.append(credit(decays))
        alike = gini_weights_unbiased(returns)[:, None] * steps.mask / (n - 2)
        return jnp.concatenate([alike[None], *(credit / n for credit in credits)])

    @staticmethod
    def _with_law(state: CriticState, law: str) -> CriticState:
        none = jnp.zeros(0)
        return state if law == "remembered" else state._replace(returns=none, known=none)


@jax.jit
def gradient_estimates(critics: Critics, log_prob: Any, theta: Any, steps: Steps, actions: Array) -> Array:
    """[batches, E, parameters]: the estimates of -grad D from each batch of `steps`, [batches, n, T]."""

    def of_batch(batch: tuple[Steps, Array]) -> Array:
        steps, actions = batch
        _, vjp = jax.vjp(lambda theta: log_prob(theta, steps.observations, actions[:, :, None])[..., 0], theta)
        return jax.vmap(lambda weights: ravel_pytree(vjp(weights))[0])(critics.step_weights(steps))

    return jax.lax.map(of_batch, (steps, actions))


class Measured(NamedTuple):
    """One estimator on many batches of one size."""

    ratio: float  # The variance of the leave-one-out estimate over that of this one: traces of covariances.
    ratio_error: float  # Its standard error.
    error_ratio: float  # The same of mean squared errors, bias included.
    bias: float  # Distance of the mean from the true gradient over its norm, without what noise adds to it.
    bias_in_errors: float  # That distance in standard errors, with what noise adds: about 1 if there is no bias.
    cosine: float  # Of the mean with the true gradient.
    batch_cosine: float  # Of one batch's estimate with it, on average.


def compare(estimates: Floats, truth: Floats | None) -> tuple[float, dict[Estimator, Measured]]:
    """The norm of the gradient, and each estimator [batches, E, parameters] against it.

    Where the truth is not known the mean of an unbiased estimator takes its place, and distances from it are means of
    differences between two estimates from the same batch.
    """
    by_name = dict(zip(ESTIMATORS, np.moveaxis(estimates, 1, 0).astype(np.float64), strict=True))
    reference, known = by_name[REFERENCE], truth is not None
    goal = truth if truth is not None else reference.mean(axis=0)
    norm = np.sqrt(goal @ goal if known else max(excess(reference)[0], 1e-30))
    spreads = {name: spread(each) for name, each in by_name.items()}
    biases = {name: excess(each - (goal if known else reference)) for name, each in by_name.items()}
    errors = {name: spreads[name].mean() + biases[name][0] for name in by_name}
    base, measured = spreads[LEAVE_ONE_OUT], {}
    for name, each in by_name.items():
        own, (bias, bias_in_errors) = spreads[name], biases[name]
        ratio = base.mean() / own.mean()
        ratio_error = ratio * np.std(base / base.mean() - own / own.mean()) / np.sqrt(len(own))
        error_ratio, bias = errors[LEAVE_ONE_OUT] / errors[name], np.sqrt(bias) / norm
        both = cosines(each.mean(axis=0)[None], goal), cosines(each, goal)
        measured[name] = Measured(ratio, ratio_error, error_ratio, bias, bias_in_errors, *both)
    return float(norm), measured


def spread(estimates: Floats) -> Floats:
    """[batches]: squared distances from the mean; on average they are the trace of the covariance."""
    return ((estimates - estimates.mean(axis=0)) ** 2).sum(axis=-1) * len(estimates) / (len(estimates) - 1)


def excess(differences: Floats) -> tuple[float, float]:
    """The squared norm of their mean, less what noise adds to it; and its norm in standard errors."""
    mean, noise = differences.mean(axis=0), spread(differences).mean() / len(differences)
    return max(float(mean @ mean - noise), 0.0), float(np.sqrt(mean @ mean / max(noise, 1e-30)))


def cosines(estimates: Floats, goal: Floats) -> float:
    """The mean cosine of [batches, parameters] with the goal; 0 for an estimate of 0."""
    norms = np.linalg.norm(estimates, axis=-1) * np.linalg.norm(goal)
    return float(np.mean(estimates @ goal / np.maximum(norms, 1e-30)))
