"""The mean part of Algorithm 1: REINFORCE with a baseline and reuse of samples, and a slot where risk belongs.

The risk part is a `RiskMeasure`; this page knows nothing of which. Read `update` and `ascend` beside the paper's
Algorithm 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.algorithm import Learner
from steadyrl.agents.policy_gradient import PolicyGradient, optimiser
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.batch import Batch
from steadyrl.networks import Value
from steadyrl.risk import Order, Sample
from steadyrl.settings import setting

Pull = Callable[[Array], tuple[Any]]
"""From what each log pi weighs to the gradient of their weighted sum."""


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
        None,
        "Step size of the value function; if not given, 100 times the policy's for a table and 10 times for a network.",
        above=0,
    )

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        settings = super().completed(tabular, finite)
        assert settings.policy_learning_rate is not None
        rate = (100 if settings.network == "table" else 10) * settings.policy_learning_rate
        return dataclasses.replace(settings, value_learning_rate=self.value_learning_rate or rate)


@dataclass(frozen=True)
class VPG(PolicyGradient):
    """Algorithm 1 for one policy, one value function and at most one measure of risk."""

    value: Value
    settings: VPGSettings

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        """How the value function takes its steps."""
        return optimiser(self.settings.optimiser, self.settings.value_learning_rate)

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        k_policy, k_value = jax.random.split(key)
        phi = self.value.init(k_value)
        return super().init(k_policy)._replace(phi=phi, phi_optimiser=self.value_optimiser.init(phi))

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Array]:
        """Ascend on one batch at most M times, while enough trajectories stay in range; also how many times."""
        sampled = self.log_prob(learner.theta, batch)
        order = Order.of(batch.returns)
        fewest = self.measure.least_episodes if self.measure else 1

        def go_on(carry: tuple[Array, Array, Learner]) -> Array:
            m, enough, _ = carry
            return enough & (m < self.settings.inner_updates)

        def once(carry: tuple[Array, Array, Learner]) -> tuple[Array, Array, Learner]:
            m, _, learner = carry
            log_pi, pull = jax.vjp(lambda theta: self.log_prob(theta, batch), learner.theta)
            rho, selected = self.select(batch, log_pi - sampled)
            enough = selected.sum() >= max(self.settings.least_selected * selected.size, fewest)
            sample = Sample(batch.returns, rho, selected, order)
            learner = jax.lax.cond(enough, lambda: self.ascend(learner, batch, sample, pull), lambda: learner)
            return m + enough, enough, learner

        m, _, learner = jax.lax.while_loop(go_on, once, (jnp.int32(0), jnp.bool(True), learner))
        return learner, m

    def select(self, batch: Batch, log_ratios: Array) -> tuple[Array, Array]:
        """The ratio of each trajectory, and which are in [1 - delta, 1 + delta]; 0 for the others."""
        rho = jnp.exp(batch.total(log_ratios))
        selected = jnp.abs(rho - 1) <= self.settings.ratio_range
        return jnp.where(selected, rho, 0.0), selected  # An infinite ratio times a weight of 0 would be NaN.

    def ascend(self, learner: Learner, batch: Batch, sample: Sample, pull: Pull) -> Learner:
        """One update of policy and value function from the selected trajectories.

        Both mean_grad and gini_grad are sums over trajectories i and steps t of a weight times grad log pi(a_t|s_t):
        (g_t - V(s_t)) rho_i / |D| in the one, lambda rho_i eta_i in the other, with the minus and the 1 / (|D| - 1)
        in eta. The weights are added first, and their one sum is pulled through the policy once.
        """
        rho, selected = sample.ratios, sample.where
        V, phi, phi_optimiser = self.sweep(learner, batch, selected)
        per_reward = rho / selected.sum()
        per_visit = -per_reward[:, None] * V
        risk = learner.risk
        if self.measure is not None:
            eta, risk = self.measure.weights(sample, risk)
            of_risk = (rho * eta)[:, None]
            if self.measure.contains_mean:
                per_reward, per_visit = jnp.zeros_like(per_reward), of_risk * jnp.ones_like(V)
            else:
                per_visit = per_visit + self.risk_aversion * of_risk
        (gradient,) = pull(batch.weights(per_reward, per_visit))
        theta, theta_optimiser = self.ascended(learner, gradient)
        return learner._replace(
            theta=theta, theta_optimiser=theta_optimiser, phi=phi, phi_optimiser=phi_optimiser, risk=risk
        )

    def sweep(self, learner: Learner, batch: Batch, selected: Array) -> tuple[Array, Any, Any]:
        """V [n, L] as each trajectory meets it, and the value function after one step per selected trajectory.

        The steps go in the order of collection, not of the sorted returns: sorted, the baseline of a trajectory would
        depend on its own rank and bias the mean part (deviation 5).
        """

        def step(carry: tuple[Any, Any], trajectory: Any) -> tuple[tuple[Any, Any], Array]:
            *met, chosen = trajectory
            # Those that are not selected weigh nothing: their V is not asked for.
            not_chosen = (carry, jnp.zeros_like(met[1]))
            moved: tuple[tuple[Any, Any], Array] = jax.lax.cond(chosen, partial(learn, carry, *met), lambda: not_chosen)
            return moved

        def learn(carry: tuple[Any, Any], s: Any, visits: Array, g: Array, T: Array) -> tuple[tuple[Any, Any], Array]:
            phi, optimiser = carry

            def loss(phi: Any) -> tuple[Array, Array]:
                V = self.value(phi, s)
                # The mean of (V - g)^2 over the steps, less the part that does not depend on phi.
                return (visits * V**2 - 2 * g * V).sum() / T, V

            slope, V = jax.grad(loss, has_aux=True)(phi)
            steps, optimiser = self.value_optimiser.update(slope, optimiser, phi)
            return (optax.apply_updates(phi, steps), optimiser), V

        start = (learner.phi, learner.phi_optimiser)
        each = (batch.observations, batch.state_visits, batch.state_rewards_to_go, batch.lengths, selected)
        (phi, optimiser), V = jax.lax.scan(step, start, each)
        return V, phi, optimiser
