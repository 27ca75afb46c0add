"""The mean part of Algorithm 2: PPO's clipped objective, with the slot where risk belongs.

The risk part is the `RiskMeasure` that Algorithm 1 takes; this page knows nothing of which. Read `update` and `ascend`
beside the paper's Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.algorithm import Learner, Material
from steadyrl.agents.policy_gradient import PolicyGradient, optimiser
from steadyrl.agents.ppo_settings import PPOSettings, RiskPPOSettings
from steadyrl.batch import Batch, batch_of_steps
from steadyrl.episodes import Episodes
from steadyrl.minibatches import Minibatches
from steadyrl.networks import Value
from steadyrl.returns import generalised_advantages, rewards_to_go
from steadyrl.risk import Order, Sample


class Steps(NamedTuple):
    """Steps to learn from, [n, L] or in any other shape."""

    observations: Array
    actions: Array
    """[..., 1, ...]: the one action taken there."""
    sampled: Array
    """Log pi(a|s) when it was taken."""
    advantages: Array
    targets: Array
    """What the values are to be."""
    happened: Array
    """1, or 0 in the padding."""

    @property
    def shares(self) -> Array:
        """What each step weighs in a mean over those that happened."""
        return self.happened / jnp.maximum(self.happened.sum(), 1)


Weigh = Callable[[Array], tuple[Array, Any]]
"""From the log ratios of steps to what each log pi weighs for the risk part, and the measure's new state."""


@dataclass(frozen=True)
class PPOClip(PolicyGradient):
    """Algorithm 2 for one policy, one value function and at most one measure of risk.

    What is ascended is a mean over steps, so everything is divided by nT, as the paper's mean_grad is; T is the mean
    length where lengths differ (deviation 40).
    """

    value: Value
    settings: PPOSettings

    @property
    def material(self) -> Material:
        """Advantages need the steps in order, and what was seen last."""
        return "episodes"

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """How the policy takes its steps."""
        s = self.settings
        return optimiser(s.optimiser, s.policy_learning_rate, s.max_gradient_norm)

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        """How the value function takes its steps."""
        s = self.settings
        return optimiser(s.optimiser, s.value_learning_rate, s.max_gradient_norm)

    @property
    def by_step(self) -> bool:
        """Whether the risk part is inside PPO's clipped objective (deviation 47) or beside it."""
        return getattr(self.settings, "risk_ratios", "") == "step"

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        k_policy, k_value, k_order = jax.random.split(key, 3)
        phi = self.value.init(k_value)
        learner = super().init(k_policy)._replace(phi=phi, phi_optimiser=self.value_optimiser.init(phi))
        return learner._replace(key=jax.random.key_data(k_order)) if self.settings.minibatch_size else learner

    def update(self, learner: Learner, episodes: Episodes) -> tuple[Learner, Array]:
        """M passes over one batch; also how many steps the policy took."""
        batch = batch_of_steps(episodes, self.settings.gamma)
        advantages, targets = self.advantages(learner, batch, episodes)
        sampled = self.log_prob(learner.theta, batch)[..., 0]
        assert batch.observations is not None, "episodes come step by step"
        assert batch.actions is not None, "episodes come step by step"
        steps = Steps(batch.observations, batch.actions, sampled, advantages, targets, batch.state_visits)
        spread = jnp.float32(1)
        if self.settings.normalise_advantages:
            mean = (steps.shares * advantages).sum()
            spread = jnp.sqrt((steps.shares * (advantages - mean) ** 2).sum()) + 1e-8
            steps = steps._replace(advantages=(advantages - mean) / spread)
        order, before = Order.of(batch.returns), learner.risk

        def weigh(log_ratios: Array) -> tuple[Array, Any]:
            # From the running estimates as they were: a batch that is used M times is still one sample of returns.
            of_trajectories = (log_ratios * steps.happened).sum(axis=1)
            return self.weigh(before, batch.returns, order, of_trajectories, spread)

        passes = self.minibatch_passes if self.settings.minibatch_size else self.whole_passes
        return passes(learner, steps, weigh)

    def advantages(self, learner: Learner, batch: Batch, episodes: Episodes) -> tuple[Array, Array]:
        """A and g [n, L], from the values as they are when the batch is new."""
        gamma, happened = self.settings.gamma, batch.state_visits
        V = self.value(learner.phi, batch.observations) * happened
        rewards = jnp.asarray(episodes.rewards, V.dtype)
        if not self.settings.time_out_ends:
            beyond = self.value(learner.phi, jnp.asarray(episodes.last_observations))
            last = jnp.arange(happened.shape[1]) == batch.lengths[:, None] - 1
            rewards = rewards + gamma * (last * (beyond * ~jnp.asarray(episodes.terminated))[:, None])
        A = generalised_advantages(rewards, V, gamma, self.settings.gae_lambda)
        return A, rewards_to_go(rewards, gamma)

    def weigh(self, risk: Any, returns: Array, order: Order, log_ratios: Array, spread: Array) -> tuple[Array, Any]:
        """What each log pi of a trajectory [n] weighs for the risk part, in a mean over steps and in units of `spread`.

        lambda rho_i eta_i / ((n - 1) T) in a sum is n times lambda rho_i eta_i / (n - 1) in a mean over n T steps; the
        1 / (n - 1) is in eta.
        """
        if self.measure is None:
            return jnp.zeros_like(returns), risk
        assert isinstance(self.settings, RiskPPOSettings)
        rho = jnp.exp(jnp.minimum(log_ratios, jnp.log(self.settings.ratio_bound)))
        rho = jnp.ones_like(rho) if self.by_step else rho
        eta, risk = self.measure.weights(Sample(returns, rho, jnp.ones_like(returns, bool), order), risk)
        return self.risk_aversion * returns.size * rho * eta / spread, risk

    def whole_passes(self, learner: Learner, steps: Steps, weigh: Weigh) -> tuple[Learner, Array]:
        """In each pass one step of the policy from all steps, and of the value function from each trajectory in turn.

        First all passes of the one, then all of the other: neither needs the other, and taken apart they are quicker.
        """
        M = self.settings.inner_updates

        def of_trajectories(log_ratios: Array) -> tuple[Array, Any]:
            weights, risk = weigh(log_ratios)
            return weights[:, None], risk

        def sweep(_: Any, learner: Learner) -> Learner:
            return jax.lax.scan(lambda so_far, trajectory: (self.fit(so_far, trajectory), None), learner, steps)[0]

        learner = jax.lax.fori_loop(0, M, lambda _, so_far: self.ascend(so_far, steps, of_trajectories), learner)
        # One after the other: the compiler might have them share the cores.
        learner = jax.lax.optimization_barrier(learner)  # type: ignore[no-untyped-call]
        return jax.lax.fori_loop(0, M, sweep, learner), jnp.int32(M)

    def minibatch_passes(self, learner: Learner, steps: Steps, weigh: Weigh) -> tuple[Learner, Array]:
        """In each pass one step of policy and value function from each minibatch."""

        def once(_: Any, carry: tuple[Learner, Array]) -> tuple[Learner, Array]:
            learner, more = self.pass_in_minibatches(carry[0], steps, weigh)
            return learner, carry[1] + more

        passes: tuple[Learner, Array] = jax.lax.fori_loop(0, self.settings.inner_updates, once, (learner, jnp.int32(0)))
        return passes

    def pass_in_minibatches(self, learner: Learner, steps: Steps, weigh: Weigh) -> tuple[Learner, Array]:
        """One step of policy and value function from each minibatch; ratios are those at the start of the pass."""
        log_pi = self.policy.log_prob(learner.theta, steps.observations, steps.actions)[..., 0]
        weights, risk = weigh(log_pi - steps.sampled)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (steps, weights[:, None] * steps.happened))
        k_order, k_next = jax.random.split(jax.random.wrap_key_data(learner.key))
        learner = learner._replace(risk=risk, key=jax.random.key_data(k_next))
        size = min(self.settings.minibatch_size, steps.happened.size)
        drawn = Minibatches.of(k_order, flat[0].happened, size)

        def once(k: Array, learner: Learner) -> Learner:
            rows, within = drawn.part(k, size)
            part, of_risk = jax.tree.map(lambda x: x[rows], flat)
            part = part._replace(happened=within.astype(part.happened.dtype))
            return self.fit(self.ascend(learner, part, lambda _: (of_risk, learner.risk)), part)

        return jax.lax.fori_loop(0, drawn.parts, once, learner), drawn.parts

    def ascend(self, learner: Learner, steps: Steps, weigh: Weigh) -> Learner:
        """One step of the policy along mean_grad - lambda gini_grad, and the entropy's gradient."""

        def both(theta: Any) -> tuple[Array, Array]:
            return self.policy.log_prob_and_entropy(theta, steps.observations, steps.actions)

        (log_pi, _), pull = jax.vjp(both, learner.theta)
        log_ratio = log_pi[..., 0] - steps.sampled
        of_risk, risk = weigh(log_ratio)
        inside, beside = (of_risk, 0.0) if self.by_step else (0.0, of_risk)
        A, ratio = steps.advantages + inside, jnp.exp(jnp.clip(log_ratio, -20, 20))
        # The gradient of min(ratio A, clip(ratio) A): none once the ratio has gone as far as it pays.
        paying = jnp.where(A > 0, ratio < 1 + self.settings.clip_range, ratio > 1 - self.settings.clip_range)
        of_log_pi = steps.shares * (paying * ratio * A + beside)
        (gradient,) = pull((of_log_pi[..., None], self.settings.entropy_coefficient * steps.shares))
        theta, optimiser = self.ascended(learner, gradient)
        return learner._replace(theta=theta, theta_optimiser=optimiser, risk=risk)

    def fit(self, learner: Learner, steps: Steps) -> Learner:
        """One step of the value function towards the targets, by the mean squared error."""

        def loss(phi: Any) -> Array:
            error = self.value(phi, steps.observations) - steps.targets
            return self.settings.value_coefficient * (steps.shares * error**2).sum()

        moves, optimiser = self.value_optimiser.update(jax.grad(loss)(learner.phi), learner.phi_optimiser, learner.phi)
        return learner._replace(phi=optax.apply_updates(learner.phi, moves), phi_optimiser=optimiser)
