"""The mean part of Tamar and MVP with the vanilla policy gradient: the return times the score, once for each batch.

There is no value function and no reuse of samples, as in these methods' own papers. A batch is one episode by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.agents.algorithm import Learner
from steadyrl.agents.policy_gradient import PolicyGradient
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.batch import Batch
from steadyrl.risk import Sample
from steadyrl.settings import setting


@dataclass(frozen=True)
class EpisodicSettings(PolicyGradientSettings):
    """Settings of methods that update after each episode."""

    episodes_per_update: int | None = setting(1, "Whole episodes collected before each update.", least=1)
    policy_learning_rate: float | None = setting(
        None, "Step size of the policy; if not given, 1e-5 for a table and 7e-5 for a network.", above=0
    )

    learning_rates: ClassVar[dict[str, float]] = {"table": 1e-5, "mlp": 7e-5}


@dataclass(frozen=True)
class Episodic(PolicyGradient):
    """theta += learning rate * mean over the batch of (R + lambda weight) score."""

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Array]:
        """One step from one batch."""
        R = batch.returns
        weight = R / R.size
        risk = learner.risk
        if self.measure is not None:
            eta, risk = self.measure.weights(Sample(R, jnp.ones_like(R), jnp.ones_like(R, bool)), risk)
            weight = eta if self.measure.contains_mean else weight + self.risk_aversion * eta
        of_log_pi = batch.weights(jnp.zeros_like(R), weight[:, None] * jnp.ones_like(batch.state_visits))
        gradient = jax.grad(lambda theta: (of_log_pi * self.log_prob(theta, batch)).sum())(learner.theta)
        theta, optimiser = self.ascended(learner, gradient)
        return learner._replace(theta=theta, theta_optimiser=optimiser, risk=risk), jnp.int32(1)
