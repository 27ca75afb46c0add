"""The mean part of Algorithm 1: REINFORCE with a baseline and reuse of samples, and a slot where risk belongs.

The risk part is a `RiskMeasure`; this page knows nothing of which. Read `ascend` beside the paper's Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.algorithm import Learner
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.batch import Batch
from steadyrl.networks import Policy, Value
from steadyrl.risk import Order, RiskMeasure, Sample
from steadyrl.settings import setting


@dataclass(frozen=True)
class VPGSettings(PolicyGradientSettings):
    """Settings of Algorithm 1. Defaults are the paper's for the Guarded Maze."""

    inner_updates: int = setting(10, "M: the most updates that one batch of episodes is used for.", least=1)
    ratio_range: float = setting(
        0.5, "delta: a trajectory is reused while its likelihood ratio is in [1 - delta, 1 + delta].", least=0
    )
    least_selected: float = setting(
        0.6, "beta: a batch is dropped once fewer than this share of its trajectories is in range.", least=0, most=1
    )
    value_learning_rate: float | None = setting(
        None, "Step size of the value function; 100 times the policy's if not given.", above=0
    )


@dataclass(frozen=True)
class VPG:
    """Algorithm 1 for one policy, one value function and at most one measure of risk."""

    policy: Policy
    value: Value
    measure: RiskMeasure | None
    risk_aversion: float
    settings: VPGSettings

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """Stochastic gradient steps, as the paper takes in the maze."""
        return optax.sgd(self.settings.policy_learning_rate)

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        """Stochastic gradient steps, as the paper takes in the maze."""
        return optax.sgd(self.settings.value_learning_rate or 100 * self.settings.policy_learning_rate)

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        k_policy, k_value = jax.random.split(key)
        theta, phi = self.policy.init(k_policy), self.value.init(k_value)
        risk = jax.tree.map(jnp.asarray, self.measure.initial_state) if self.measure else ()
        return Learner(theta, self.policy_optimiser.init(theta), phi, self.value_optimiser.init(phi), risk)

    @property
    def wants_transitions(self) -> bool:
        """It takes batches."""
        return False

    def acting(self, learner: Learner) -> Array:
        """The policy itself."""
        return self.policy.probabilities(learner.theta)

    def learned(self, learner: Learner) -> Array:
        """The policy itself."""
        return self.policy.probabilities(learner.theta)

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Array]:
        """Ascend on one batch at most M times, while enough trajectories stay in range; also how many times."""
        sampled = self.policy.log_prob(learner.theta, batch.observations, batch.actions)
        order = Order.of(batch.returns)
        fewest = self.measure.least_episodes if self.measure else 1

        def go_on(carry: tuple[Array, Array, Learner]) -> Array:
            m, enough, _ = carry
            return enough & (m < self.settings.inner_updates)

        def once(carry: tuple[Array, Array, Learner]) -> tuple[Array, Array, Learner]:
            m, _, learner = carry
            rho, selected = self.select(learner, batch, sampled)
            enough = selected.sum() >= max(self.settings.least_selected * selected.size, fewest)
            ascended = self.ascend(learner, batch, Sample(batch.returns, rho, selected, order))
            kept = jax.tree.map(lambda new, old: jnp.where(enough, new, old), ascended, learner)
            return m + enough, enough, kept

        m, _, learner = jax.lax.while_loop(go_on, once, (jnp.int32(0), jnp.bool(True), learner))
        return learner, m

    def select(self, learner: Learner, batch: Batch, sampled: Array) -> tuple[Array, Array]:
        """The ratio of each trajectory, and which are in [1 - delta, 1 + delta]; 0 for the others."""
        log_pi = self.policy.log_prob(learner.theta, batch.observations, batch.actions)
        rho = jnp.exp(batch.total(log_pi - sampled))
        selected = jnp.abs(rho - 1) <= self.settings.ratio_range
        return jnp.where(selected, rho, 0.0), selected  # An infinite ratio times a weight of 0 would be NaN.

    def ascend(self, learner: Learner, batch: Batch, sample: Sample) -> Learner:
        """One update of policy and value function from the selected trajectories."""
        rho, selected = sample.ratios, sample.where
        V, phi, phi_optimiser = self.sweep(learner, batch, selected)
        # The gradient is sum_i sum_t grad log pi(a_t|s_t) (a_i g_t + c_it): first the mean part, a_i (g_t - V(s_t)).
        a = rho / selected.sum()
        c = -a[:, None] * V
        risk = learner.risk
        if self.measure is not None:
            eta, risk = self.measure.weights(sample, risk)
            if self.measure.contains_mean:
                a, c = jnp.zeros_like(a), (rho * eta)[:, None] * jnp.ones_like(V)
            else:
                c = c + self.risk_aversion * (rho * eta)[:, None]
        u = batch.weights(per_reward=a, per_visit=c)

        theta, theta_optimiser = step_along(self.policy, self.policy_optimiser, learner, batch, u)
        return Learner(theta, theta_optimiser, phi, phi_optimiser, risk)

    def sweep(self, learner: Learner, batch: Batch, selected: Array) -> tuple[Array, Any, Any]:
        """V [n, L] as each trajectory meets it, and the value function after one step per selected trajectory.

        The steps go in the order of collection, not of the sorted returns: sorted, the baseline of a trajectory would
        depend on its own rank and bias the mean part (deviation 5).
        """

        def step(carry: tuple[Any, Any], trajectory: Any) -> tuple[tuple[Any, Any], Array]:
            phi, optimiser = carry
            s, visits, g, T, chosen = trajectory

            def loss(phi: Any) -> tuple[Array, Array]:
                V = self.value(phi, s)
                # The mean of (V - g)^2 over the steps, less the part that does not depend on phi.
                return (visits * V**2 - 2 * g * V).sum() / T, V

            slope, V = jax.grad(loss, has_aux=True)(phi)
            steps, moved_optimiser = self.value_optimiser.update(slope, optimiser, phi)
            moved = (optax.apply_updates(phi, steps), moved_optimiser)
            return jax.tree.map(lambda new, old: jnp.where(chosen, new, old), moved, carry), V

        start = (learner.phi, learner.phi_optimiser)
        each = (batch.observations, batch.state_visits, batch.state_rewards_to_go, batch.lengths, selected)
        (phi, optimiser), V = jax.lax.scan(step, start, each)
        return V, phi, optimiser


def step_along(
    policy: Policy, optimiser: optax.GradientTransformation, learner: Learner, batch: Batch, u: Array
) -> tuple[Any, Any]:
    """Theta and its optimiser after one step along the gradient of sum u log pi."""

    def objective(theta: Any) -> Array:
        return (u * policy.log_prob(theta, batch.observations, batch.actions)).sum()

    descent = jax.tree.map(jnp.negative, jax.grad(objective)(learner.theta))
    steps, moved = optimiser.update(descent, learner.theta_optimiser, learner.theta)
    return optax.apply_updates(learner.theta, steps), moved
