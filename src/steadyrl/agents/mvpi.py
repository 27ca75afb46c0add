"""MVPI: mean-variance policy iteration, a transform of the reward around a risk-neutral solver (Zhang et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.dqn import DQNSettings, DQNUpdate
from steadyrl.agents.q_learning import EpisodeQSettings, QLearningUpdate
from steadyrl.agents.td3 import TD3Settings, TD3Update
from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.base.settings import Settings, setting
from steadyrl.envs.spaces import is_tabular
from steadyrl.rollouts.acting import NumpyPolicy
from steadyrl.training.algorithm import Algorithm, BatchKind, Learner, Metrics
from steadyrl.training.replay_buffer import ReplayBatch, ReplayBuffer, TransitionLayout
from steadyrl.training.transitions import Transitions

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MVPIKwargs
    from steadyrl.envs.source import AnyEnv, Source


def _solver_setting(default: str) -> Any:
    return setting(
        default,
        "What learns from the transformed rewards: 'q_learning', 'dqn' or 'td3'; by default what fits the spaces.",
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
    initial_dual: float = setting(0.0, "Where y starts: the mean reward of a step that rewards are compared with.")
    dual_estimate: str = setting(
        "returns",
        "How y is estimated: from 'returns', as (1 - gamma) times the mean discounted return of the last iteration's "
        "episodes, as in the paper; or from 'rewards', as the mean reward of a step in them, with a replay buffer in "
        "the latest 10,000 steps, as in the code of MVPI's authors (deviation 59).",
        choices=("returns", "rewards"),
    )


@dataclass(frozen=True)
class MVPISettings(TransformSettings, EpisodeQSettings):
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


RECENT_REWARDS = 10_000
"""Steps whose mean reward is y with a replay buffer and dual_estimate="rewards"; the number of MVPI's authors."""


class Iteration(NamedTuple):
    """y, and what its next value will be made of."""

    y: Any
    total: Any
    """Sum of the discounted returns of this iteration's episodes so far; or [2], their rewards and their steps."""
    episodes: Any
    """Their number."""


@dataclass(frozen=True)
class RewardTransform:
    """r - lambda r^2 + 2 lambda r y (Eq. 5) in place of r.

    y is estimated from the episodes of the solver's last iteration, as it acted, and is constant during the next: as
    (1 - gamma) E[G0], or as the mean reward of a step (`from_rewards`). The first counts the time after an episode's
    end as steps without reward, the second does not. With a replay buffer the second is of the latest steps, and new
    before each round of updates (`MVPIReplayUpdate.before_updates`). Without -lambda y^2: it is the same in every step,
    and would charge long episodes more than short ones (deviation 21).
    """

    risk_aversion: Leaf[float]
    initial_dual: Leaf[float]
    one_minus_gamma: Leaf[float]
    """Computed in 64 bits: in 32, 1 - 0.999 has lost five digits."""
    episodes_per_iteration: int
    from_rewards: bool = False

    def start(self) -> Iteration:
        """Before the first episode."""
        return Iteration(jnp.float32(self.initial_dual), jnp.zeros(2 if self.from_rewards else ()), jnp.int32(0))

    def rewards(self, r: Array, current: Iteration) -> Array:
        """The rewards that the solver learns from, with the current y."""
        transformed: Array = r - self.risk_aversion * r**2 + 2 * self.risk_aversion * r * current.y
        return transformed

    def add_episodes(self, current: Iteration, totals: Array, episodes: int) -> Iteration:
        """With the `totals` of further episodes, see `Iteration`; at the end of an iteration, a new y."""
        total, episodes = current.total + totals, current.episodes + episodes
        over = episodes >= self.episodes_per_iteration
        estimate = total[0] / total[1] if self.from_rewards else self.one_minus_gamma * total / episodes
        y = jnp.where(over, estimate, current.y)
        return Iteration(y, jnp.where(over, 0.0, total), jnp.where(over, 0, episodes))


register_pytree(RewardTransform)
_add_episodes = jax.jit(RewardTransform.add_episodes)


@dataclass(frozen=True)
class MVPIUpdate:
    """A solver that learns from transformed rewards; everything else is the solver's."""

    solver: Leaf[Any]
    transform: Leaf[RewardTransform]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register_pytree(cls)

    @property
    def settings(self) -> Any:
        """The solver's."""
        return self.solver.settings

    @property
    def batch_kind(self) -> BatchKind:
        """The solver's."""
        kind: BatchKind = self.solver.batch_kind
        return kind

    @property
    def compilable(self) -> bool:
        """As the solver is."""
        return bool(self.solver.compilable)

    def init(self, key: Array) -> Learner:
        """The solver's start, and y's."""
        learner: Learner = self.solver.init(key)
        return learner._replace(risk=self.transform.start())

    def numpy_policy(self, learner: Learner, exploring_at: int | None = None) -> tuple[NumpyPolicy, Any]:
        """The solver's."""
        policy: tuple[NumpyPolicy, Any] = self.solver.numpy_policy(learner, exploring_at)
        return policy


@dataclass(frozen=True)
class MVPITableUpdate(MVPIUpdate):
    """Q-learning from transformed rewards."""

    def learned_table(self, learner: Learner) -> Array:
        """The solver's policy."""
        table: Array = self.solver.learned_table(learner)
        return table

    def exploring_table(self, learner: Learner) -> Array:
        """The solver's exploration."""
        table: Array = self.solver.exploring_table(learner)
        return table

    def update(self, learner: Learner, steps: Transitions) -> tuple[Learner, Metrics]:
        """The solver's update with transformed rewards; then the episodes are added to the estimate of y."""
        transformed = steps._replace(rewards=self.transform.rewards(steps.rewards, learner.risk))
        in_rewards = jnp.stack([(steps.rewards * steps.mask).sum(), steps.mask.sum()])
        totals = in_rewards if self.transform.from_rewards else steps.returns.sum()
        risk = self.transform.add_episodes(learner.risk, totals, steps.returns.size)
        learner, metrics = self.solver.update(learner, transformed)
        return learner._replace(risk=risk), metrics


@dataclass(frozen=True)
class MVPIReplayUpdate(MVPIUpdate):
    """DQN or TD3 from transformed rewards: the replay buffer holds the environment's, transformed when sampled."""

    @property
    def layout(self) -> TransitionLayout:
        """The solver's."""
        layout: TransitionLayout = self.solver.layout
        return layout

    def update(self, learner: Learner, batches: ReplayBatch) -> tuple[Learner, Metrics]:
        """The solver's updates, with rewards transformed by the current y."""
        rewards = self.transform.rewards(batches.rewards, learner.risk)
        result: tuple[Learner, Metrics] = self.solver.update(learner, batches._replace(rewards=rewards))
        return result

    def before_updates(self, learner: Learner, replay_buffer: ReplayBuffer) -> Learner:
        """With the mean of the latest rewards as y, if that is how it is estimated."""
        if not self.transform.from_rewards:
            return learner
        rewards = self.layout.parts(replay_buffer.latest(RECENT_REWARDS), 0).rewards
        return learner._replace(risk=learner.risk._replace(y=jnp.float32(rewards.mean(dtype=np.float64))))

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """Add the episode to the estimate of y."""
        if self.transform.from_rewards:
            return learner
        return learner._replace(risk=_add_episodes(self.transform, learner.risk, discounted_return.sum(), 1))


class MVPI(Agent):
    """Maximizes E[R] - risk_aversion * V[R], R the reward of a step: a proxy of the return's variance."""

    name = "mvpi"
    Settings = MVPISettings
    choice = "solver"
    settings_by_choice = {"q_learning": MVPISettings, "dqn": MVPIDQNSettings, "td3": MVPITD3Settings}  # noqa: RUF012
    settings: MVPISettings | MVPIDQNSettings | MVPITD3Settings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MVPIKwargs]
        ) -> None: ...

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """With the solver that fits the spaces, if none is given."""
        fitting = "td3" if isinstance(action_space, Box) else "dqn"
        return {"solver": "q_learning" if is_tabular(observation_space, action_space) else fitting, **given}

    def build(self) -> Algorithm:
        """The solver, with transformed rewards unless there is no risk aversion."""
        s, spaces = self.settings, (self.observation_space, self.action_space)
        transform = RewardTransform(
            s.risk_aversion, s.initial_dual, 1 - s.gamma, s.episodes_per_iteration, s.dual_estimate == "rewards"
        )
        if isinstance(s, MVPISettings):
            table = QLearningUpdate.of(s, *spaces)
            return MVPITableUpdate(table, transform) if s.risk_aversion else table
        function = self.network_function
        if isinstance(s, MVPIDQNSettings):
            solver: DQNUpdate | TD3Update = DQNUpdate.of(s, *spaces, function)
        else:
            solver = TD3Update.of(s, *spaces, function)
        return MVPIReplayUpdate(solver, transform) if s.risk_aversion else solver
