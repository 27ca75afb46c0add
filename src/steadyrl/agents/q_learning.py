"""Q-learning on a table, and the seam where MVPI transforms its rewards."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.algorithm import Algorithm, Learner, Material
from steadyrl.agents.settings import EpisodeSettings, time_out_setting
from steadyrl.networks import Policy, ProbabilityTable
from steadyrl.settings import setting
from steadyrl.spaces import is_tabular
from steadyrl.transitions import Transitions


@dataclass(frozen=True)
class QLearningSettings(EpisodeSettings):
    """Settings of Q-learning. The learning rate is the paper's for the Guarded Maze."""

    episodes_per_update: int | None = setting(
        1, "Whole episodes collected before their steps are learned from.", least=1
    )
    q_learning_rate: float = setting(5e-3, "Step size of the action values.", above=0)
    exploration: float = setting(0.1, "epsilon: the share of random actions while learning.", least=0, most=1)
    time_out_ends: bool | None = time_out_setting()

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        ends = finite if self.time_out_ends is None else self.time_out_ends
        return dataclasses.replace(super().completed(tabular, finite), time_out_ends=ends)


@dataclass(frozen=True)
class TabularQ:
    """Q(s, a) += rate * (r + gamma max_b Q(s', b) - Q(s, a)), step by step through each episode once it is over."""

    n_states: int
    n_actions: int
    settings: QLearningSettings

    @classmethod
    def of(
        cls, settings: QLearningSettings, observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> TabularQ:
        """For spaces that are numbered."""
        if not is_tabular(observation_space, action_space):
            raise ValueError(
                f"{observation_space} and {action_space} are not supported by q_learning: "
                "it learns a table, so both must be Discrete, from 0."
            )
        assert isinstance(observation_space, Discrete)
        assert isinstance(action_space, Discrete)
        return cls(int(observation_space.n), int(action_space.n), settings)

    @property
    def compilable(self) -> bool:
        """It is a table."""
        return True

    @property
    def material(self) -> Material:
        """It learns from single steps."""
        return "transitions"

    def init(self, key: Array) -> Learner:
        """All values 0."""
        return Learner(jnp.zeros((self.n_states, self.n_actions)), (), (), (), ())

    def learned(self, learner: Learner) -> Array:
        """The best action, or equally each of the best."""
        best: Array = learner.theta == learner.theta.max(axis=-1, keepdims=True)
        return best / best.sum(axis=-1, keepdims=True)

    def acting(self, learner: Learner) -> Array:
        """The best action, but a random one with probability epsilon."""
        epsilon = self.settings.exploration
        return (1 - epsilon) * self.learned(learner) + epsilon / self.n_actions

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Policy, Any]:
        """Either of them as a table."""
        table = self.learned(learner) if exploring_at is None else self.acting(learner)
        return ProbabilityTable(self.n_states, self.n_actions), np.asarray(table)

    def update(self, learner: Learner, steps: Transitions) -> tuple[Learner, Array]:
        """Learn from each step of each episode, in order."""
        settings = self.settings
        nothing_after = steps.last if settings.time_out_ends else steps.ends
        s, s_next, happened = steps.observations, steps.next_observations, steps.happened
        each = (s, steps.actions, steps.rewards, s_next, nothing_after, happened)

        def learn(Q: Array, one: Any) -> tuple[Array, None]:
            s, a, r, s_next, over, happened = one
            target = r + settings.gamma * jnp.where(over, 0.0, Q[s_next].max())
            return Q.at[s, a].add(jnp.where(happened, settings.q_learning_rate * (target - Q[s, a]), 0.0)), None

        Q, _ = jax.lax.scan(learn, learner.theta, jax.tree.map(lambda x: x.reshape(-1), each))
        return learner._replace(theta=Q), steps.happened.sum()


class QLearning(Agent):
    """Maximises E[G0] by learning the value of each action in each state."""

    name = "q_learning"
    Settings = QLearningSettings
    settings: QLearningSettings

    def build(self) -> Algorithm:
        """A table of action values."""
        return TabularQ.of(self.settings, self.observation_space, self.action_space)
