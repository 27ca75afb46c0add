"""The mean part of Tamar and MVP with the vanilla policy gradient: the return times the score, once for each batch.

There is no value function and no reuse of samples, as in these methods' own papers. A batch is one episode by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from steadyrl.agents.networks import Policy
from steadyrl.agents.policy_gradient import PolicyGradientUpdate, weight_metrics
from steadyrl.agents.settings import PolicyGradientSettings, by_network
from steadyrl.base.settings import Rule, override
from steadyrl.risk import Measure, Sample
from steadyrl.training.algorithm import Learner, Metrics
from steadyrl.training.batch import Batch, Weighting


@dataclass(frozen=True)
class EpisodicSettings(PolicyGradientSettings):
    """Settings of methods that update after each episode."""

    episodes_per_update: int = override(PolicyGradientSettings, "episodes_per_update", 1)
    policy_learning_rate: float = override(
        PolicyGradientSettings, "policy_learning_rate", by_network(table=1e-5, mlp=7e-5)
    )
    # Adam would scale the step of every single episode to the same size.
    optimiser: str = override(
        PolicyGradientSettings,
        "optimiser",
        Rule(lambda s, env: "sgd" if s.network == "table" else "adam", "sgd for a table, adam for a network"),
    )

    def make_update(self, policy: Policy, value: Any, measure: Measure | None, risk_aversion: float) -> EpisodicUpdate:
        """See `PolicyGradientSettings`."""
        return EpisodicUpdate(policy, measure, risk_aversion, self)


@dataclass(frozen=True)
class EpisodicUpdate(PolicyGradientUpdate):
    """theta += learning rate * mean over the batch of (R + lambda weight) score."""

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Metrics]:
        """One step from one batch."""
        R, risk, metrics = batch.returns, learner.risk, {}
        weight = R / R.size
        if self.measure is not None:
            eta, risk = self.measure.weights(Sample(R, jnp.ones_like(R), jnp.ones_like(R, bool)), risk)
            weight = eta if self.measure.contains_mean else weight + self.risk_aversion * eta
            metrics = weight_metrics(eta)
        per_visit = batch.rows.spread(weight)[:, None] * jnp.ones_like(batch.state_visits)
        weights = batch.weights(Weighting(jnp.zeros_like(R), per_visit))

        def objective(theta: Any) -> Any:
            return (weights * self.log_prob(theta, batch)).sum()

        value, ascent = jax.value_and_grad(objective)(learner.theta)
        learner = self.descend(learner, jax.tree.map(jnp.negative, ascent))._replace(risk=risk)
        given = batch.observations, batch.actions, batch.action_masks
        _, entropy = self.policy.log_prob_and_entropy(learner.theta, *given)
        of_steps = batch.state_visits if batch.observations is not None else batch.state_visits.sum(axis=0)
        metrics |= {
            "policy_loss": -value,
            "gradient_norm": optax.tree.norm(ascent),
            "entropy": (of_steps * entropy).sum() / batch.lengths.sum(),
            "updates": jnp.int32(1),
        }
        return learner, metrics
