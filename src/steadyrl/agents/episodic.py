"""The mean part of Tamar and MVP with the vanilla policy gradient: the return times the score, once for each batch.

There is no value function and no reuse of samples, as in these methods' own papers. A batch is one episode by default.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.algorithm import Learner
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.agents.vpg import step_along
from steadyrl.batch import Batch
from steadyrl.networks import Policy
from steadyrl.risk import RiskMeasure, Sample
from steadyrl.settings import setting


@dataclass(frozen=True)
class EpisodicSettings(PolicyGradientSettings):
    """Settings of methods that update after each episode."""

    episodes_per_update: int = setting(1, "Whole episodes collected before each update.", least=1)
    policy_learning_rate: float = setting(1e-5, "Step size of the policy.", above=0)


@dataclass(frozen=True)
class Episodic:
    """theta += learning rate * mean over the batch of (R + lambda weight) score."""

    policy: Policy
    measure: RiskMeasure | None
    risk_aversion: float
    settings: EpisodicSettings

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """Stochastic gradient steps."""
        return optax.sgd(self.settings.policy_learning_rate)

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        theta = self.policy.init(key)
        risk = jax.tree.map(jnp.asarray, self.measure.initial_state) if self.measure else ()
        return Learner(theta, self.policy_optimiser.init(theta), (), (), risk)

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
        """One step from one batch."""
        R = batch.returns
        weight = R / R.size
        risk = learner.risk
        if self.measure is not None:
            eta, risk = self.measure.weights(Sample(R, jnp.ones_like(R), jnp.ones_like(R, bool)), risk)
            weight = eta if self.measure.contains_mean else weight + self.risk_aversion * eta
        u = batch.weights(jnp.zeros_like(R), weight[:, None] * jnp.ones_like(batch.state_visits))
        theta, optimiser = step_along(self.policy, self.policy_optimiser, learner, batch, u)
        return Learner(theta, optimiser, (), (), risk), jnp.int32(1)
