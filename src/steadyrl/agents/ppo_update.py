"""The mean part of Algorithm 2: PPO's clipped objective, with a slot for a risk measure.

The risk part is the `Measure` that Algorithm 1 takes. Read `update` and `policy_loss` beside the paper's Algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.networks import NormalisedValue, Value
from steadyrl.agents.policy_gradient import (
    PolicyGradientUpdate,
    explained_variance,
    make_optimiser,
    weight_metrics,
)
from steadyrl.agents.ppo_passes import PPOSteps, RiskWeights, minibatch_passes, whole_passes
from steadyrl.risk import Order, Sample
from steadyrl.training.algorithm import BatchKind, Learner, Metrics
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes, steps_from_episodes
from steadyrl.training.dial import Dial
from steadyrl.training.returns import generalized_advantages, rewards_to_go
from steadyrl.training.rows import WHOLE, Rows

FINAL_STEP_SHARE = 0.1
"""What remains of the step sizes after `annealing_episodes`."""


@dataclass(frozen=True)
class PPOUpdate(PolicyGradientUpdate):
    """Algorithm 2 for one policy, one value function and at most one measure of risk.

    Without a value function there is no mean part: what is ascended is the credit of the critic alone.

    The objective is a mean over steps, so everything is divided by nT, as the paper's mean_grad is; T is the mean
    length where lengths differ (deviation 40).
    """

    value: Value | None

    @property
    def batch_kind(self) -> BatchKind:
        """Advantages need the steps in order, and the last observations."""
        return "episodes"

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """How the policy takes its steps."""
        s = self.settings
        return make_optimiser(s.optimiser, s.policy_learning_rate, s.max_gradient_norm)

    @property
    def value_optimiser(self) -> optax.GradientTransformation:
        """How the value function takes its steps."""
        s = self.settings
        return make_optimiser(s.optimiser, s.value_learning_rate, s.max_gradient_norm)

    @property
    def risk_by_step(self) -> bool:
        """Whether the risk part is inside PPO's clipped objective (deviation 47) or beside it."""
        return self.measure is not None and self.settings.risk_ratios == "step"

    def init(self, key: Array) -> Learner:
        """An untrained learner."""
        k_policy, k_value, k_order = jax.random.split(key, 3)
        learner = super().init(k_policy)
        if self.value is not None:
            phi = self.value.init(k_value)
            learner = learner._replace(phi=phi, phi_optimiser=self.value_optimiser.init(phi))
        if self.settings.annealing_episodes:
            learner = learner._replace(updates=jnp.int32(0))
        return learner._replace(key=jax.random.key_data(k_order)) if self.settings.minibatch_size else learner

    def update(self, learner: Learner, episodes: EpisodeBatch) -> tuple[Learner, Metrics]:
        """M passes over one batch; metrics are means over its updates."""
        batch = batch_from_episodes(episodes, self.settings.gamma)
        mean_advantages, targets, V = self.advantages(learner, episodes)
        learner, credit, credit_metrics = self.credit_steps(learner, batch)
        advantages = mean_advantages + credit
        steps = PPOSteps(
            observations=jnp.asarray(batch.observations),
            actions=jnp.asarray(batch.actions),
            old_log_prob=self.log_prob(learner.theta, batch)[..., 0],
            advantages=advantages,
            targets=targets,
            mask=batch.state_visits,
            action_masks=batch.action_masks,
        )
        scale = jnp.float32(1)
        if self.settings.normalise_advantages:
            normalised, scale = self.normalised(advantages, steps.mask, batch.rows)
            steps = steps._replace(advantages=normalised)
        if isinstance(self.value, NormalisedValue):
            phi = self.value.rescaled(learner.phi, targets, steps.shares, batch.returns.size)
            learner = learner._replace(phi=phi)
        returns, state = self.risk_returns(batch), learner.risk
        order = Order.of(returns)

        def risk_weights(log_ratios: Array) -> tuple[Array, Any]:
            # From the running estimates as they were: a batch that is used M times is still one sample of returns.
            of_trajectories = batch.rows.total((log_ratios * steps.mask).sum(axis=1))
            weights, new_state = self.risk_weights(state, returns, order, of_trajectories, scale)
            return batch.rows.spread(weights)[:, None], new_state

        if self.settings.minibatch_size:
            learner, metrics = minibatch_passes(self, learner, steps, risk_weights)
        else:
            learner, metrics = whole_passes(self, learner, steps, risk_weights, batch.rows)
        if self.settings.annealing_episodes:
            learner = learner._replace(updates=learner.updates + 1)
        metrics |= credit_metrics | self._batch_metrics(steps, V, state, returns, order)
        return learner, metrics

    def advantages(self, learner: Learner, episodes: EpisodeBatch) -> tuple[Array, Array, Array]:
        """A, g and V [K, L], from the values as they are when the batch is new; 0 without a value function."""
        gamma, mask, rows = self.settings.gamma, jnp.asarray(episodes.mask, jnp.float32), episodes.rows
        if self.value is None:
            return jnp.zeros_like(mask), jnp.zeros_like(mask), jnp.zeros_like(mask)
        V, next_value = self.values_of_episodes(learner, episodes)
        V = V * mask
        rewards = jnp.asarray(episodes.rewards, V.dtype)
        if self.settings.bootstrap_on_truncation:
            at_end = rows.spread(next_value * ~jnp.asarray(episodes.terminated))[:, None]
            rewards = rewards + gamma * (steps_from_episodes(episodes).last * at_end)
        A = generalized_advantages(rewards, V, gamma, self.settings.gae_lambda, rows)
        targets = A + V if self.settings.value_targets == "td_lambda" else rewards_to_go(rewards, gamma, rows)
        return A, targets, V

    def normalised(self, advantages: Array, mask: Array, rows: Rows = WHOLE) -> tuple[Array, Array]:
        """[K, L]: advantages in standard deviations from their mean, and that unit; with a dial within each group."""
        if self.dial is None:
            mean, scale = _mean_and_scale(advantages, mask)
            return (advantages - mean) / scale, scale
        group = rows.spread(self.dial.group_of(rows.episodes(mask)))
        masks = mask * (group == jnp.arange(self.dial.groups)[:, None])[..., None]
        means, scales = jax.vmap(_mean_and_scale, (None, 0))(advantages, masks)
        return (advantages - means[group][:, None]) / scales[group][:, None], scales

    def risk_weights(
        self, state: Any, returns: Array, order: Order, log_ratios: Array, scale: Array
    ) -> tuple[Array, Any]:
        """The risk weight of each trajectory [n] in a mean over steps, in units of `scale`, and the new state.

        lambda rho_i eta_i / ((n - 1) T) in a sum is n times lambda rho_i eta_i / (n - 1) in a mean over n T steps; the
        1 / (n - 1) is part of eta.
        """
        if self.measure is None:
            return jnp.zeros_like(returns), state
        assert not isinstance(self.risk_aversion, Dial), "a range of lambdas is credited by step"
        rho = jnp.exp(jnp.minimum(log_ratios, jnp.log(self.settings.ratio_bound)))
        rho = jnp.ones_like(rho) if self.risk_by_step else rho
        eta, state = self.measure.weights(Sample(returns, rho, jnp.ones_like(returns, bool), order), state)
        return self.risk_aversion * returns.size * rho * eta / scale, state

    def policy_loss(self, theta: Any, steps: PPOSteps, risk_weights: RiskWeights) -> tuple[Array, tuple[Any, Metrics]]:
        """Minus the clipped objective, the risk part and the entropy bonus; also the measure's new state."""
        given = steps.observations, steps.actions, steps.action_masks
        log_prob, entropy = self.policy.log_prob_and_entropy(theta, *given)
        log_prob, eps = log_prob[..., 0], self.settings.clip_range
        log_ratio = log_prob - steps.old_log_prob
        ratio = jnp.exp(jnp.clip(log_ratio, -20, 20))
        weights, state = jax.lax.stop_gradient(risk_weights(log_ratio))
        A = steps.advantages + weights if self.risk_by_step else steps.advantages
        objective = jnp.minimum(ratio * A, jnp.clip(ratio, 1 - eps, 1 + eps) * A)
        if self.measure is not None and not self.risk_by_step:
            objective += weights * log_prob
        objective += self.settings.entropy_coefficient * entropy
        metrics = {
            "entropy": (steps.shares * entropy).sum(),
            "approx_kl": (steps.shares * (ratio - 1 - log_ratio)).sum(),
            "clip_fraction": (steps.shares * (jnp.abs(ratio - 1) > eps)).sum(),
        }
        return -(steps.shares * objective).sum(), (state, metrics)

    @property
    def shared(self) -> bool:
        """Whether policy and values share all layers but the last."""
        return self.value is not None and self.settings.shared_trunk

    def values(self, theta: Any, phi: Any, observations: Array) -> Array:
        """V of each observation; the policy's parameters are needed where layers are shared."""
        assert self.value is not None
        policy: Any = self.policy
        return self.value(phi, policy.features(theta, observations) if self.shared else observations)

    def values_of_episodes(self, learner: Learner, episodes: EpisodeBatch) -> tuple[Array, Array]:
        """V of all observations [K, L], and of the last ones [n]."""
        values = partial(self.values, learner.theta, learner.phi)
        observations, last = jnp.asarray(episodes.observations), jnp.asarray(episodes.last_observations)
        if not self.recurrent:
            return values(observations), values(last)
        # What a recurrent network knows at the end, it knows from the observations before.
        after = jnp.arange(len(last)), jnp.asarray(episodes.mask, jnp.int32).sum(axis=-1)
        V = values(jnp.concatenate([observations, jnp.zeros_like(last[:, None])], axis=1).at[after].set(last))
        return V[:, :-1], V[after]

    def value_loss(self, phi: Any, steps: PPOSteps, theta: Any) -> Array:
        """The mean squared error of the values, in their own units, times its coefficient."""
        error = (self.values(theta, phi, steps.observations) - steps.targets) / self.value_unit(phi)
        loss: Array = self.settings.value_coefficient * (steps.shares * error**2).sum()
        return loss

    def value_unit(self, phi: Any) -> Array:
        """The scale that values are learned in."""
        unit: Array = phi.scale.std if isinstance(self.value, NormalisedValue) else jnp.float32(1)
        return jax.lax.stop_gradient(unit)

    def step_policy(self, learner: Learner, steps: PPOSteps, risk_weights: RiskWeights) -> tuple[Learner, Metrics]:
        """One step of the policy."""

        def objective(theta: Any) -> tuple[Array, tuple[Any, Metrics]]:
            loss, more = self.policy_loss(theta, steps, risk_weights)
            return loss + self.value_loss(learner.phi, steps, theta) if self.shared else loss, more

        (loss, (state, metrics)), gradient = jax.value_and_grad(objective, has_aux=True)(learner.theta)
        metrics |= {"policy_loss": loss, "gradient_norm": optax.tree.norm(gradient)}
        return self.descend(learner, gradient)._replace(risk=state), metrics

    def step_values(self, learner: Learner, steps: PPOSteps) -> tuple[Learner, Metrics]:
        """One step of the value function, if there is one."""
        return (learner, {}) if self.value is None else self.move_values(learner, self.value_gradient(learner, steps))

    def value_gradient(self, learner: Learner, steps: PPOSteps) -> tuple[Array, Any]:
        """The loss of the value function, and its gradient."""
        result: tuple[Array, Any] = jax.value_and_grad(self.value_loss)(learner.phi, steps, learner.theta)
        return result

    def move_values(self, learner: Learner, loss_and_gradient: tuple[Array, Any]) -> tuple[Learner, Metrics]:
        """One step of the value function down its gradient."""
        phi, (loss, gradient) = learner.phi, loss_and_gradient
        moves, optimiser = self.value_optimiser.update(gradient, learner.phi_optimiser, phi)
        moved = optax.apply_updates(phi, self.annealed(learner, moves))
        learner = learner._replace(phi=moved, phi_optimiser=optimiser)
        return learner, {"value_loss": loss * self.value_unit(phi) ** 2 / self.settings.value_coefficient}

    def annealed(self, learner: Learner, moves: Any) -> Any:
        """The moves of an optimizer, smaller the more episodes were seen; `Learner.updates` counts batches."""
        s = self.settings
        if not s.annealing_episodes:
            return moves
        second_half = jnp.clip(2 * learner.updates * s.n / s.annealing_episodes - 1, 0, 1)
        return jax.tree.map(lambda move: move * (1 - (1 - FINAL_STEP_SHARE) * second_half), moves)

    def _batch_metrics(self, steps: PPOSteps, V: Array, state: Any, returns: Array, order: Order) -> Metrics:
        """How well the values explained the targets when the batch was new, and the risk weights."""
        mean = (steps.shares * steps.targets).sum()
        variance = (steps.shares * (steps.targets - mean) ** 2).sum()
        error = (steps.shares * (steps.targets - V) ** 2).sum()
        metrics = {} if self.value is None else {"explained_variance": explained_variance(error, variance)}
        if self.measure is not None:
            sample = Sample(returns, jnp.ones_like(returns), jnp.ones_like(returns, bool), order)
            metrics |= weight_metrics(self.measure.weights(sample, state)[0])
        return metrics


def _mean_and_scale(advantages: Array, mask: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over the steps where `mask` is 1."""
    shares = mask / jnp.maximum(mask.sum(), 1)
    mean = (shares * advantages).sum()
    return mean, jnp.sqrt((shares * (advantages - mean) ** 2).sum()) + 1e-8
