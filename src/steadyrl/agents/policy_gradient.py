"""What all policy gradients share: a policy that is moved along scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from steadyrl.agents.algorithm import Learner, Material
from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.batch import Batch
from steadyrl.networks import Policy, SoftmaxTable
from steadyrl.risk import RiskMeasure


@dataclass(frozen=True)
class PolicyGradient:
    """A policy, and at most one measure of risk that is penalised."""

    policy: Policy
    measure: RiskMeasure | None
    risk_aversion: float
    settings: PolicyGradientSettings

    @property
    def material(self) -> Material:
        """Batches, unless a method wants more."""
        return "batch"

    @property
    def compilable(self) -> bool:
        """A table, unless it needs the steps in order."""
        return isinstance(self.policy, SoftmaxTable) and self.material != "episodes"

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """How the policy takes its steps."""
        return optimiser(self.settings.optimiser, self.settings.policy_learning_rate)

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing, and has no value function."""
        theta = self.policy.init(key)
        risk = jax.tree.map(jnp.asarray, self.measure.initial_state) if self.measure else ()
        return Learner(theta, self.policy_optimiser.init(theta), (), (), risk)

    def acting(self, learner: Learner) -> Array:
        """The policy itself."""
        assert isinstance(self.policy, SoftmaxTable), "only a table can be written down"
        return self.policy.probabilities(learner.theta)

    def learned(self, learner: Learner) -> Array:
        """The policy itself."""
        return self.acting(learner)

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Policy, Any]:
        """The policy itself."""
        return self.policy, jax.tree.map(np.asarray, learner.theta)

    def log_prob(self, theta: Any, batch: Batch) -> Array:
        """Log pi of every action of a batch."""
        return self.policy.log_prob(theta, batch.observations, batch.actions)

    def ascended(self, learner: Learner, gradient: Any) -> tuple[Any, Any]:
        """Theta and its optimiser after one step along `gradient`."""
        descent = jax.tree.map(jnp.negative, gradient)
        steps, moved = self.policy_optimiser.update(descent, learner.theta_optimiser, learner.theta)
        return optax.apply_updates(learner.theta, steps), moved


def optimiser(name: str, learning_rate: float | None, most: float | None = None) -> optax.GradientTransformation:
    """The optimiser by that name; longer gradients than `most` are shortened to it first."""
    assert learning_rate is not None, "settings are completed before they are used"
    # Flat: one vector for all layers compiles in a fraction of the time.
    step = optax.flatten(optax.adam(learning_rate)) if name == "adam" else optax.sgd(learning_rate)
    return step if most is None else optax.chain(optax.clip_by_global_norm(most), step)
