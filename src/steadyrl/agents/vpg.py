"""The mean part of Algorithm 1: REINFORCE with a baseline and reuse of samples, and a slot for a risk measure.

Read `update` and `step` beside the paper's Algorithm 1. `tests/reference/algorithm_1.py` is the same in plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.networks import Policy, Value
from steadyrl.agents.policy_gradient import (
    PolicyGradientUpdate,
    explained_variance,
    make_optimiser,
    weight_metrics,
)
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.base.settings import Rule, setting
from steadyrl.risk import Measure, Order, Sample
from steadyrl.training.algorithm import Learner, Metrics
from steadyrl.training.batch import Batch, Weighting
from steadyrl.training.rows import Part, Rows

VJP = Callable[[Array], tuple[Any]]
"""From the weight of each log pi to the gradient of their weighted sum."""


@dataclass(frozen=True)
class ReuseSettings(PolicyGradientSettings):
    """How often Algorithm 1 uses a batch. M, delta and beta are the paper's for the Guarded Maze."""

    inner_updates: int = setting(
        10, "M: the most updates that one batch of episodes is used for.", least=1, aliases=("n_epochs",)
    )
    ratio_range: float = setting(
        0.5, "delta: a trajectory is reused while its likelihood ratio is in [1 - delta, 1 + delta].", least=0
    )
    least_selected: float = setting(
        0.6, "beta: a batch is dropped once fewer than this share of its trajectories is in range.", least=0, most=1
    )

    def make_update(
        self, policy: Policy, value: Value | None, measure: Measure | None, risk_aversion: float, **credit: Any
    ) -> VPGUpdate:
        """See `PolicyGradientSettings`."""
        return VPGUpdate(policy, measure, risk_aversion, self, value, **credit)


@dataclass(frozen=True)
class VPGSettings(ReuseSettings):
    """Settings of Algorithm 1."""

    value_learning_rate: float = setting(
        Rule(lambda s, env: 10 * s.policy_learning_rate, "10 times the policy's"),
        "Step size of the value function.",
        above=0,
    )


@dataclass(frozen=True)
class VPGUpdate(PolicyGradientUpdate):
    """Algorithm 1 for one policy, one value function and at most one measure of risk.

    Without a value function there is no mean part: what is ascended is the credit of the critic alone.
    """

    value: Value | None

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        """How the value function takes its steps."""
        return make_optimiser(self.settings.optimiser, self.settings.value_learning_rate)

    def init(self, key: Array) -> Learner:
        """An untrained learner."""
        k_policy, k_value = jax.random.split(key)
        if self.value is None:
            return super().init(k_policy)
        phi = self.value.init(k_value)
        return super().init(k_policy)._replace(phi=phi, phi_optimiser=self.value_optimiser.init(phi))

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Metrics]:
        """Ascend on one batch at most M times, while enough trajectories stay in range; metrics of the last step."""
        learner, credit, credit_metrics = self.credit_steps(learner, batch)
        batch = self.credited(batch, credit)
        old_log_prob = self.log_prob(learner.theta, batch)
        returns = self.risk_returns(batch)
        order = Order.of(returns)
        min_episodes = self.measure.min_episodes if self.measure else 1

        def cond(carry: tuple[Array, Array, Learner, Metrics]) -> Array:
            m, enough, _, _ = carry
            return jnp.logical_and(enough, m < self.settings.inner_updates)

        def body(carry: tuple[Array, Array, Learner, Metrics]) -> tuple[Array, Array, Learner, Metrics]:
            m, _, learner, metrics = carry
            log_prob, vjp = jax.vjp(lambda theta: self.log_prob(theta, batch), learner.theta)
            rho, selected = self.select(batch, log_prob - old_log_prob)
            # A little more than the count: in 32 bits, 0.6 * 50 is above 30.
            share = selected.sum() * (1 + 1e-6) >= self.settings.least_selected * selected.size
            enough = share & (selected.sum() >= min_episodes)
            step = partial(self.step, learner, batch, Sample(returns, rho, selected, order), log_prob, vjp)
            learner, metrics = jax.lax.cond(enough, step, lambda: (learner, metrics))
            return m + enough, enough, learner, metrics

        start = (jnp.int32(0), jnp.bool(True), learner, self._no_metrics())
        m, _, learner, metrics = jax.lax.while_loop(cond, body, start)
        metrics |= credit_metrics | self._policy_metrics(learner, batch, old_log_prob)
        return learner, {**metrics, "updates": m}

    def credited(self, batch: Batch, credit: Array) -> Batch:
        """The batch with what weighs log pi: rewards to go, and the credit of the critic, or the latter alone."""
        if self.critic is None:
            return batch
        return (batch.without_rewards() if self.value is None else batch).with_credit(credit)

    def select(self, batch: Batch, log_ratios: Array) -> tuple[Array, Array]:
        """The ratio of each trajectory, and which are in [1 - delta, 1 + delta]; 0 for the others."""
        rho = jnp.exp(batch.total(log_ratios))
        selected = jnp.abs(rho - 1) <= self.settings.ratio_range
        return jnp.where(selected, rho, 0.0), selected  # An infinite ratio times a weight of 0 would be NaN.

    def step(
        self, learner: Learner, batch: Batch, sample: Sample, log_prob: Array, vjp: VJP
    ) -> tuple[Learner, Metrics]:
        """One step of policy and value function from the selected trajectories.

        mean_grad and gini_grad are both sums of a weight times grad log pi(a_t|s_t): the weights are added, and their
        sum takes one vector-Jacobian product.
        """
        V, phi, phi_optimiser = self.fit_values(learner, batch, sample.where)
        mean_grad = self.mean_weights(sample, V, batch.rows)
        risk_grad, eta, risk = self.risk_weights(sample, learner.risk)
        both = Weighting(mean_grad.per_reward, mean_grad.per_visit + batch.rows.spread(risk_grad)[:, None])
        weights = batch.weights(both)
        (ascent,) = vjp(weights)
        learner = self.descend(learner, jax.tree.map(jnp.negative, ascent))
        learner = learner._replace(phi=phi, phi_optimiser=phi_optimiser, risk=risk)
        metrics = {"policy_loss": -(weights * log_prob).sum(), "gradient_norm": optax.tree.norm(ascent)}
        return learner, {**metrics, **self._value_metrics(batch, sample, V), **self._risk_metrics(eta)}

    def mean_weights(self, sample: Sample, V: Array, rows: Rows) -> Weighting:
        """mean_grad: trajectory i and step t weigh (g_t - V(s_t)) rho_i / |D|; with a dial, the mean over groups."""
        per_reward = sample.ratios / self._selected(sample.where)
        return Weighting(per_reward, -rows.spread(per_reward)[:, None] * V)

    def _selected(self, where: Array) -> Array:
        """|D|; with a dial [n], that of each trajectory's own group times the number of groups."""
        if self.dial is None:
            return where.sum()
        count = jnp.maximum(self.dial.by_group(where).sum(axis=1), 1) * self.dial.groups
        return jnp.repeat(count, where.size // self.dial.groups)

    def risk_weights(self, sample: Sample, state: Any) -> tuple[Array, Array, Any]:
        """-lambda gini_grad: each step of trajectory i weighs lambda rho_i eta_i, [n]; also eta, and the new state.

        The minus and the 1 / (|D| - 1) are part of eta.
        """
        if self.measure is None:
            return jnp.zeros_like(sample.returns), jnp.zeros(1), state
        eta, state = self.measure.weights(sample, state)
        return self.risk_aversion * (sample.ratios * eta), eta, state

    def fit_values(self, learner: Learner, batch: Batch, selected: Array) -> tuple[Array, Any, Any]:
        """The value function after one step for each selected trajectory, and V [K, L] as each trajectory finds it.

        The steps are taken in the order of collection, not of the sorted returns: sorted, the baseline of a trajectory
        would depend on its own rank and bias the mean part (deviation 5).
        """
        if self.value is None:
            return jnp.zeros_like(batch.state_visits), learner.phi, learner.phi_optimiser
        if batch.rows.split:
            return self._fit_values_in_parts(learner, batch, selected)

        def body(carry: tuple[Any, Any], item: Any) -> tuple[tuple[Any, Any], Array]:
            *trajectory, chosen = item
            # Those that are not selected weigh nothing: their V is not needed.
            skipped = (carry, jnp.zeros_like(trajectory[1]))
            step: tuple[tuple[Any, Any], Array] = jax.lax.cond(
                chosen, partial(fit, carry, *trajectory), lambda: skipped
            )
            return step

        def fit(carry: tuple[Any, Any], s: Any, visits: Array, g: Array, T: Array) -> tuple[tuple[Any, Any], Array]:
            gradient, V = self._value_gradient(carry[0], s, visits, g, T)
            return self._step_values(*carry, gradient), V

        start = (learner.phi, learner.phi_optimiser)
        each = (batch.observations, batch.state_visits, batch.state_rewards_to_go, batch.lengths, selected)
        (phi, optimiser), V = jax.lax.scan(body, start, each)
        return V, phi, optimiser

    def _fit_values_in_parts(self, learner: Learner, batch: Batch, selected: Array) -> tuple[Array, Any, Any]:
        """`fit_values` of a packed batch: the gradient of a trajectory is the sum of those of its parts."""

        def body(carry: tuple[Any, Any, Array], i: Array) -> tuple[tuple[Any, Any, Array], None]:
            fitted: tuple[Any, Any, Array] = jax.lax.cond(selected[i], partial(fit, carry, i), lambda: carry)
            return fitted, None

        def fit(carry: tuple[Any, Any, Array], i: Array) -> tuple[Any, Any, Array]:
            phi, optimiser, V = carry

            def add(total: tuple[Any, Array], part: Part) -> tuple[Any, Array]:
                s, visits, g = part.take((batch.observations, batch.state_visits, batch.state_rewards_to_go))
                own = part.own[:, None]
                gradient, V_part = self._value_gradient(phi, s, visits * own, g * own, batch.lengths[i])
                return jax.tree.map(jnp.add, total[0], gradient), part.put(total[1], V_part)

            gradient, V = batch.rows.fold(i, add, (jax.tree.map(jnp.zeros_like, phi), V))
            return *self._step_values(phi, optimiser, gradient), V

        start = (learner.phi, learner.phi_optimiser, jnp.zeros_like(batch.state_visits))
        (phi, optimiser, V), _ = jax.lax.scan(body, start, jnp.arange(selected.size))
        return V, phi, optimiser

    def _value_gradient(self, phi: Any, s: Any, visits: Array, g: Array, T: Array) -> tuple[Any, Array]:
        """The gradient of the mean of (V - g)^2 over T steps, and V."""
        value = self.value
        assert value is not None

        def loss(phi: Any) -> tuple[Array, Array]:
            V = value(phi, s)
            # Less the part that does not depend on phi.
            return (visits * V**2 - 2 * g * V).sum() / T, V

        gradient: tuple[Any, Array] = jax.grad(loss, has_aux=True)(phi)
        return gradient

    def _step_values(self, phi: Any, optimiser: Any, gradient: Any) -> tuple[Any, Any]:
        steps, optimiser = self.value_optimiser.update(gradient, optimiser, phi)
        return optax.apply_updates(phi, steps), optimiser

    def _value_metrics(self, batch: Batch, sample: Sample, V: Array) -> Metrics:
        """Mean squared error and explained variance over the steps of the selected trajectories, before the fit."""
        if self.value is None:
            return {}
        chosen = sample.where.astype(V.dtype)
        steps, g_squared = (chosen * batch.lengths).sum(), (chosen * batch.squared_rewards_to_go).sum()
        of_rows = batch.rows.spread(chosen)[:, None]
        g = of_rows * batch.state_rewards_to_go
        error = (g_squared + (of_rows * batch.state_visits * V**2 - 2 * g * V).sum()) / steps
        variance = g_squared / steps - (g.sum() / steps) ** 2
        return {"value_loss": error, "explained_variance": explained_variance(error, variance)}

    def _risk_metrics(self, eta: Array) -> Metrics:
        return weight_metrics(eta) if self.measure is not None else {}

    def _no_metrics(self) -> Metrics:
        of_values = () if self.value is None else ("value_loss", "explained_variance")
        names = ("policy_loss", "gradient_norm", *of_values, *self._risk_metrics(jnp.zeros(1)))
        return dict.fromkeys(names, jnp.float32(0))

    def _policy_metrics(self, learner: Learner, batch: Batch, old_log_prob: Array) -> Metrics:
        """Entropy after the last update, and how far the policy moved from the one that sampled the batch."""
        given = batch.observations, batch.actions, batch.action_masks
        log_prob, entropy = self.policy.log_prob_and_entropy(learner.theta, *given)
        table, steps = batch.observations is None, batch.lengths.sum()
        of_steps = batch.state_visits.sum(axis=0) if table else batch.state_visits
        of_pairs = batch.visits.sum(axis=0) if table else batch.visits
        # An infinite ratio where nothing was visited, times a count of 0, would be NaN.
        log_ratio = jnp.where(of_pairs > 0, log_prob - old_log_prob, 0.0)
        return {
            "entropy": (of_steps * entropy).sum() / steps,
            "approx_kl": (of_pairs * (jnp.exp(log_ratio) - 1 - log_ratio)).sum() / steps,
        }
