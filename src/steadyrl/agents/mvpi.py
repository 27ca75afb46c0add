"""MVPI: mean-variance policy iteration, a transform of the reward around a risk-neutral solver (Zhang et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.algorithm import Algorithm, Learner, Material
from steadyrl.agents.q_learning import QLearningSettings, TabularQ
from steadyrl.networks import Policy, SoftmaxTable, Value
from steadyrl.risk import RiskMeasure
from steadyrl.settings import setting
from steadyrl.transitions import Transitions


@dataclass(frozen=True)
class MVPISettings(QLearningSettings):
    """Settings of MVPI with Q-learning. Defaults are the paper's for the Guarded Maze, where it prints them."""

    risk_aversion: float = setting(
        0.2, "lambda: how much a unit of the variance of rewards counts against the mean.", least=0
    )
    episodes_per_iteration: int = setting(
        1000, "Episodes of the solver between two updates of y, one policy iteration.", least=1
    )
    initial_dual: float = setting(0.0, "Where y = (1 - gamma) E[G0] starts.")


class Iteration(NamedTuple):
    """y, and what its next value will be made of."""

    y: Any
    total: Any
    """Sum of the discounted returns of this iteration's episodes so far."""
    episodes: Any
    """Their number."""


@dataclass(frozen=True)
class RewardTransform:
    """A solver that is given r - lambda r^2 + 2 lambda r y (Eq. 5) in place of r.

    y = (1 - gamma) E[G0] is estimated by the episodes of the solver's last iteration, as it acted, and stands still
    during the next. Without -lambda y^2: it is the same in every step, and would charge long episodes more than short
    ones (deviation 21).
    """

    solver: TabularQ
    risk_aversion: float
    episodes_per_iteration: int
    initial_dual: float

    @property
    def settings(self) -> QLearningSettings:
        """The solver's."""
        return self.solver.settings

    @property
    def material(self) -> Material:
        """The solver's."""
        return self.solver.material

    def init(self, key: Array) -> Learner:
        """The solver's start, and y's."""
        start = Iteration(jnp.float32(self.initial_dual), jnp.float32(0), jnp.int32(0))
        return self.solver.init(key)._replace(risk=start)

    def learned(self, learner: Learner) -> Array:
        """The solver's policy."""
        return self.solver.learned(learner)

    def acting(self, learner: Learner) -> Array:
        """The solver's exploration."""
        return self.solver.acting(learner)

    def in_numpy(self, learner: Learner, exploring: bool) -> tuple[Policy, Any]:
        """The solver's."""
        return self.solver.in_numpy(learner, exploring)

    def update(self, learner: Learner, steps: Transitions) -> tuple[Learner, Array]:
        """The solver's update with transformed rewards; at the end of an iteration, a new y."""
        y, total, episodes = learner.risk
        r, lam = steps.rewards, self.risk_aversion
        learner, updates = self.solver.update(learner, steps._replace(rewards=r - lam * r**2 + 2 * lam * r * y))
        discounts = self.settings.gamma ** jnp.arange(r.shape[-1], dtype=r.dtype)
        total, episodes = total + (r * discounts).sum(), episodes + r.shape[0]
        over = episodes >= self.episodes_per_iteration
        measured = (1 - self.settings.gamma) * total / episodes
        again = Iteration(jnp.where(over, measured, y), jnp.where(over, 0.0, total), jnp.where(over, 0, episodes))
        return learner._replace(risk=again), updates


class MVPI(Agent):
    """Maximises E[R] - risk_aversion * V[R], R the reward of a step: a proxy of the return's variance."""

    name = "mvpi"
    Settings = MVPISettings
    settings: MVPISettings

    def risk_measure(self) -> RiskMeasure | None:
        """Nothing of the return is penalised; the rewards of single steps are transformed."""
        return None

    def mean_part(self, policy: Policy, value: Value, measure: RiskMeasure | None) -> Algorithm:
        """Q-learning, with transformed rewards unless there is no aversion to risk."""
        assert isinstance(policy, SoftmaxTable), "Q-learning has only tables"
        s = self.settings
        solver = TabularQ(policy.n_states, policy.n_actions, s)
        if s.risk_aversion == 0:
            return solver
        return RewardTransform(solver, s.risk_aversion, s.episodes_per_iteration, s.initial_dual)
