"""What all policy gradients share: a policy that is moved along scores, and at most one risk measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.credit_settings import CreditSettings
from steadyrl.agents.networks import (
    Architecture,
    DialledSoftmaxTable,
    Policy,
    SoftmaxTable,
    Value,
    networks_for,
    quantiles_for,
)
from steadyrl.agents.networks.description import CUSTOM
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.agents.trajectory_credit import TrajectoryCredit
from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk import LawMeasure, Measure
from steadyrl.training.algorithm import Algorithm, BatchKind, Learner, Metrics, is_recurrent
from steadyrl.training.batch import Batch
from steadyrl.training.dial import Dial, lambda_at


@dataclass(frozen=True)
class PolicyGradientUpdate:
    """A policy, and at most one measure of risk that is penalized. A pytree: see `Algorithm`."""

    policy: Policy
    measure: Leaf[Measure | None]
    risk_aversion: Leaf[float | Dial]
    """Lambda, or the dial of a policy that learns for a range of them."""
    settings: Leaf[Any]
    critic: Leaf[RiskCritic | TrajectoryCredit | None] = field(default=None, kw_only=True)
    """Credits each step with what it changed in the risk, in place of a `measure` of trajectories."""
    risk_discount: Leaf[float | None] = field(default=None, kw_only=True)
    """The discount factor of the returns that `measure` is of; None for gamma."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register_pytree(cls)

    @property
    def dial(self) -> Dial | None:
        """See `Dialled`."""
        return self.risk_aversion if isinstance(self.risk_aversion, Dial) else None

    @property
    def batch_kind(self) -> BatchKind:
        """See `Algorithm`."""
        return "batch"

    @property
    def compilable(self) -> bool:
        """A table, unless the update needs the steps in order."""
        return isinstance(self.policy, SoftmaxTable | DialledSoftmaxTable) and self.batch_kind != "episodes"

    @property
    def recurrent(self) -> bool:
        """Whether policy and values depend on earlier observations: then they take whole episodes, one in a row."""
        return is_recurrent(self)

    @property
    def policy_optimiser(self) -> optax.GradientTransformation:
        """How the policy takes its steps."""
        return make_optimiser(self.settings.optimiser, self.settings.policy_learning_rate)

    def init(self, key: Array) -> Learner:
        """An untrained learner without a value function."""
        theta = self.policy.init(key)
        # With a dtype: of a Python float it would be weak, and the second update would be compiled anew.
        risk = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), self.measure.initial_state) if self.measure else ()
        if self.critic is not None:
            risk = self.critic.init(jax.random.fold_in(key, 1))
        return Learner(theta, self.policy_optimiser.init(theta), (), (), risk)

    def exploring_table(self, learner: Learner) -> Array:
        """The policy itself."""
        assert isinstance(self.policy, SoftmaxTable), "see `compilable`"
        return self.policy.probabilities(learner.theta)

    def exploring_tables(self, learner: Learner, levels: Array) -> Array:
        """The policy itself."""
        assert isinstance(self.policy, DialledSoftmaxTable), "see `compilable`"
        return self.policy.probabilities(learner.theta, levels)

    def learned_table(self, learner: Learner) -> Array:
        """The policy itself."""
        return self.exploring_table(learner)

    def numpy_policy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Policy, Any]:
        """The policy itself."""
        return self.policy, jax.tree.map(np.asarray, learner.theta)

    def log_prob(self, theta: Any, batch: Batch) -> Array:
        """Log pi of every action of a batch."""
        return self.policy.log_prob(theta, batch.observations, batch.actions, batch.action_masks)

    def credit_steps(self, learner: Learner, batch: Batch) -> tuple[Learner, Array, Metrics]:
        """[K, T]: lambda times the risk credit of each step, 0 without a critic; the critic learns from the batch."""
        if self.critic is None:
            return learner, jnp.float32(0), {}
        credit = self.critic.advantages(learner.risk, batch.steps)
        aversion = self.lambdas(batch) * self.critic.readiness(learner.risk)
        risk, loss = self.critic.fit(learner.risk, batch.steps)
        size = jnp.sqrt((credit**2).sum() / batch.lengths.sum())
        metrics = {"risk_credit_std": size, "risk_critic_loss": loss}
        return learner._replace(risk=risk), aversion * credit, metrics

    def lambdas(self, batch: Batch) -> Any:
        """The lambda of all episodes; or [K, 1], that of each row."""
        if batch.levels is None:
            return self.risk_aversion
        return batch.rows.spread(lambda_at(batch.levels))[:, None]

    def risk_returns(self, batch: Batch) -> Array:
        """[n]: the returns that `measure` is of."""
        return batch.returns if self.risk_discount is None else batch.steps.returns(self.risk_discount)

    def descend(self, learner: Learner, gradient: Any) -> Learner:
        """The learner after one step of the policy down `gradient`."""
        moves, moved = self.policy_optimiser.update(gradient, learner.theta_optimiser, learner.theta)
        theta = optax.apply_updates(learner.theta, self.annealed(learner, moves))
        return learner._replace(theta=theta, theta_optimiser=moved)

    def annealed(self, learner: Learner, moves: Any) -> Any:
        """The moves of an optimizer as they are made after so many updates."""
        return moves


class PolicyGradientAgent(Agent):
    """An agent that is a mean part, which its settings choose, and a risk part, which subclasses choose."""

    settings: Any

    def build(self) -> Algorithm:
        """See `Agent`."""
        s: Any = self.settings
        risk_aversion = getattr(s, "risk_aversion", 0.0)  # Reinforce and PPO have none.
        policy, value = self.networks()
        # Without risk aversion there is no risk part: it is REINFORCE or PPO, bit for bit (deviation 12).
        measure = self._checked_measure() if risk_aversion else None
        credit: dict[str, Any] = {}
        if measure is not None and isinstance(self.settings, CreditSettings):
            if s.credit == "step":
                if not isinstance(measure, LawMeasure):
                    raise ValueError("credit='step': this measure has no utility. Set credit='trajectory'.")
                critic = s.make_critic(quantiles_for(self.observation_space, s.network, s.levels), measure)
                measure, credit = None, {"critic": critic}
            elif s.risk_discount != s.gamma:
                credit = {"risk_discount": s.risk_discount}
        if isinstance(risk_aversion, tuple):
            risk_aversion = s.make_dial()
        algorithm: Algorithm = s.make_update(policy, value, measure, risk_aversion, **credit)
        return algorithm

    def networks(self) -> tuple[Policy, Value]:
        """The policy and the value function that fit the spaces."""
        s: Any = self.settings
        levels = s.levels if isinstance(s, CreditSettings) else None
        if s.network == CUSTOM and levels is not None:
            raise ValueError(
                "risk_aversion: a range needs layers of ours, whose inputs can be fixed. Give network a description, "
                "or choose a single lambda."
            )
        return networks_for(
            self.observation_space,
            self.action_space,
            Architecture.of(s, self.network_function),
            s.initial_log_std,
            s.initial_output_scale,
            getattr(s, "normalise_values", False),  # Of PPO alone.
            levels,
            getattr(s, "shared_trunk", False),  # Of PPO alone.
            s.squash_mean,
        )

    def risk_measure(self) -> Measure | None:
        """What is penalized of the return, times `settings.risk_aversion`; None for nothing."""
        return None

    def _checked_measure(self) -> Measure | None:
        measure = self.risk_measure()
        if measure and self.settings.n < measure.min_episodes:
            raise ValueError(
                f"episodes_per_update={self.settings.n}: {self.name} compares the returns of a batch "
                f"with each other and needs at least {measure.min_episodes} of them. Raise episodes_per_update."
            )
        return measure


def make_optimiser(name: str, learning_rate: Any, max_norm: Any = None) -> optax.GradientTransformation:
    """The optimizer by that name; gradients longer than `max_norm` are scaled down to it first."""
    # Flat: one vector for all layers compiles in a fraction of the time.
    step = optax.flatten(optax.adam(learning_rate)) if name == "adam" else optax.sgd(learning_rate)
    return step if max_norm is None else optax.chain(optax.clip_by_global_norm(max_norm), step)


def weight_metrics(weights: Array) -> dict[str, Array]:
    """Mean and standard deviation of the risk weights of the trajectories, for the record."""
    return {"risk_weight_mean": weights.mean(), "risk_weight_std": weights.std()}


def explained_variance(squared_error: Array, variance: Array) -> Array:
    """1 - squared_error / variance; 0 where there is no variance to explain."""
    return jnp.where(variance > 0, 1 - squared_error / jnp.where(variance > 0, variance, 1), 0.0)
