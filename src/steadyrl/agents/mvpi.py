"""MVPI: mean-variance policy iteration, a transform of the reward around a risk-neutral solver (Zhang et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import gymnasium as gym
import jax
import jax.numpy as jnp
from gymnasium.spaces import Discrete
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.algorithm import Algorithm, Learner, Material
from steadyrl.agents.dqn import DeepQ, DQNSettings
from steadyrl.agents.q_learning import QLearningSettings, TabularQ
from steadyrl.agents.replay import ReplaySettings
from steadyrl.agents.settings import AgentSettings
from steadyrl.agents.td3 import TD3Settings, TwinDelayed
from steadyrl.memory import Layout, Replayed
from steadyrl.networks import Acting
from steadyrl.returns import discounted_returns
from steadyrl.settings import Settings, setting
from steadyrl.spaces import is_tabular
from steadyrl.transitions import Transitions


def _solver_setting(default: str) -> Any:
    return setting(
        default,
        "What learns from the transformed rewards: 'q_learning', 'dqn' or 'td3'; if not given, what fits the spaces.",
        choices=("q_learning", "dqn", "td3"),
    )


def _iteration_setting(default: int) -> Any:
    return setting(default, "Episodes of the solver between two updates of y, one policy iteration.", least=1)


@dataclass(frozen=True)
class TransformSettings(Settings):
    """The risk part of MVPI."""

    risk_aversion: float = setting(
        0.2, "lambda: how much a unit of the variance of rewards counts against the mean.", least=0
    )
    initial_dual: float = setting(0.0, "Where y = (1 - gamma) E[G0] starts.")


@dataclass(frozen=True)
class MVPISettings(TransformSettings, QLearningSettings):
    """Settings of MVPI with Q-learning. Defaults are the paper's for the Guarded Maze, where it prints them."""

    solver: str = _solver_setting("q_learning")
    episodes_per_iteration: int = _iteration_setting(1000)


@dataclass(frozen=True)
class MVPIDQNSettings(TransformSettings, DQNSettings):
    """Settings of MVPI with DQN."""

    solver: str = _solver_setting("dqn")
    episodes_per_iteration: int = _iteration_setting(10)


@dataclass(frozen=True)
class MVPITD3Settings(TransformSettings, TD3Settings):
    """Settings of MVPI with TD3."""

    solver: str = _solver_setting("td3")
    episodes_per_iteration: int = _iteration_setting(10)


Solver = TypeVar("Solver", bound=Algorithm)


class Iteration(NamedTuple):
    """y, and what its next value will be made of."""

    y: Any
    total: Any
    """Sum of the discounted returns of this iteration's episodes so far."""
    episodes: Any
    """Their number."""


@dataclass(frozen=True)
class Transform:
    """r - lambda r^2 + 2 lambda r y (Eq. 5) in place of r.

    y = (1 - gamma) E[G0] is estimated by the episodes of the solver's last iteration, as it acted, and stands still
    during the next. Without -lambda y^2: it is the same in every step, and would charge long episodes more than short
    ones (deviation 21).
    """

    risk_aversion: float
    initial_dual: float
    episodes_per_iteration: int
    gamma: float

    def start(self) -> Iteration:
        """No episode yet."""
        return Iteration(jnp.float32(self.initial_dual), jnp.float32(0), jnp.int32(0))

    def rewards(self, r: Array, now: Iteration) -> Array:
        """The rewards that the solver is given, with the y of now."""
        transformed: Array = r - self.risk_aversion * r**2 + 2 * self.risk_aversion * r * now.y
        return transformed

    def after(self, now: Iteration, returns: Array) -> Iteration:
        """With the discounted returns [n] of further episodes; at the end of an iteration, a new y."""
        total, episodes = now.total + returns.sum(), now.episodes + returns.size
        over = episodes >= self.episodes_per_iteration
        y = jnp.where(over, (1 - self.gamma) * total / episodes, now.y)
        return Iteration(y, jnp.where(over, 0.0, total), jnp.where(over, 0, episodes))


@dataclass(frozen=True)
class Transformed(Generic[Solver]):
    """What is as the solver has it, and y beside it."""

    solver: Solver
    transform: Transform

    @property
    def material(self) -> Material:
        """The solver's."""
        return self.solver.material

    @property
    def compilable(self) -> bool:
        """As the solver is."""
        return self.solver.compilable

    def init(self, key: Array) -> Learner:
        """The solver's start, and y's."""
        return self.solver.init(key)._replace(risk=self.transform.start())

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Acting, Any]:
        """The solver's."""
        return self.solver.in_numpy(learner, exploring_at)


@dataclass(frozen=True)
class TransformedTable(Transformed[TabularQ]):
    """Q-learning from transformed rewards."""

    @property
    def settings(self) -> QLearningSettings:
        """The solver's."""
        return self.solver.settings

    def learned(self, learner: Learner) -> Array:
        """The solver's policy."""
        return self.solver.learned(learner)

    def acting(self, learner: Learner) -> Array:
        """The solver's exploration."""
        return self.solver.acting(learner)

    def update(self, learner: Learner, steps: Transitions) -> tuple[Learner, Array]:
        """The solver's update with transformed rewards; then what the episodes say of y."""
        rewards, returns = steps.rewards, discounted_returns(steps.rewards, self.settings.gamma)
        transformed = steps._replace(rewards=self.transform.rewards(rewards, learner.risk))
        risk = self.transform.after(learner.risk, returns)
        learner, updates = self.solver.update(learner, transformed)
        return learner._replace(risk=risk), updates


@dataclass(frozen=True)
class TransformedReplay(Transformed[DeepQ | TwinDelayed]):
    """DQN or TD3 from transformed rewards: those in the memory are the environment's, transformed when replayed."""

    @property
    def settings(self) -> ReplaySettings:
        """The solver's."""
        return self.solver.settings

    @property
    def layout(self) -> Layout:
        """The solver's."""
        return self.solver.layout

    def update(self, learner: Learner, replayed: Replayed) -> tuple[Learner, Array]:
        """The solver's updates, with the rewards that the y of now makes."""
        rewards = self.transform.rewards(replayed.rewards, learner.risk)
        return self.solver.update(learner, replayed._replace(rewards=rewards))

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """What the episode says of y."""
        return learner._replace(risk=_after(self.transform, learner.risk, discounted_return))


_after = jax.jit(Transform.after, static_argnums=0)


class MVPI(Agent):
    """Maximises E[R] - risk_aversion * V[R], R the reward of a step: a proxy of the return's variance."""

    name = "mvpi"
    Settings = MVPISettings
    choice = "solver"
    settings_by_choice = {"q_learning": MVPISettings, "dqn": MVPIDQNSettings, "td3": MVPITD3Settings}  # noqa: RUF012
    settings: MVPISettings | MVPIDQNSettings | MVPITD3Settings

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """With the solver that fits the spaces, if none is given."""
        fitting = "dqn" if isinstance(action_space, Discrete) else "td3"
        return {"solver": "q_learning" if is_tabular(observation_space, action_space) else fitting, **given}

    def build(self) -> Algorithm:
        """The solver, with transformed rewards unless there is no aversion to risk."""
        s, spaces = self.settings, (self.observation_space, self.action_space)
        assert isinstance(s, AgentSettings)
        transform = Transform(s.risk_aversion, s.initial_dual, s.episodes_per_iteration, s.gamma)
        if isinstance(s, MVPISettings):
            table = TabularQ.of(s, *spaces)
            return TransformedTable(table, transform) if s.risk_aversion else table
        deep = DeepQ.of(s, *spaces) if isinstance(s, MVPIDQNSettings) else TwinDelayed.of(s, *spaces)
        return TransformedReplay(deep, transform) if s.risk_aversion else deep
