"""Q-learning on a table, and the seam where MVPI transforms its rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.networks import EpsilonGreedyTable, GreedyParams, GreedyTable, Policy, QTable
from steadyrl.agents.networks.masks import masked
from steadyrl.agents.replay import fitting_agent
from steadyrl.agents.settings import UNLESS_FINITE, AgentSettings, bootstrap_setting
from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.base.settings import Rule, override, setting
from steadyrl.envs.spaces import is_tabular, shown_space
from steadyrl.training.algorithm import Algorithm, BatchKind, Learner, Metrics
from steadyrl.training.transitions import Transitions

if TYPE_CHECKING:
    from steadyrl.agents.signatures import QLearningKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class EpisodeQSettings(AgentSettings):
    """Settings of Q-learning after whole episodes, as the paper's MVPI has it in the Guarded Maze."""

    episodes_per_update: int = setting(1, "Whole episodes collected before their steps are learned from.", least=1)
    q_learning_rate: float = setting(
        5e-3,
        "Step size of the action values: where rewards are noisy, a small one averages more of them.",
        above=0,
        aliases=("learning_rate",),
    )
    exploration: float = setting(0.1, "epsilon: the share of random actions while learning.", least=0, most=1)
    bootstrap_on_truncation: bool = bootstrap_setting(UNLESS_FINITE)

    @property
    def n(self) -> int:
        """How many whole episodes a round is."""
        return self.episodes_per_update

    @property
    def learns_at_every_step(self) -> bool:
        """Whether a step is learned from before the next one is made."""
        return False


@dataclass(frozen=True)
class QLearningSettings(EpisodeQSettings):
    """Settings of Q-learning."""

    q_learning_rate: float = override(
        EpisodeQSettings,
        "q_learning_rate",
        Rule(lambda s, env: 0.1 if s.update_after == "step" else 5e-3, "0.1 at every step, 0.005 after episodes"),
    )
    update_after: str = setting(
        Rule(
            lambda s, env: "episode" if env.finite else "step", "step; in a known finite MDP episode, which is compiled"
        ),
        "When a step is learned from: right after it, or after its 'episode', as the paper's MVPI has it.",
        choices=("step", "episode"),
    )
    final_exploration: float = setting(
        0.01, "The share of random actions in the end; only with update_after='step'.", least=0, most=1
    )
    exploration_steps: int = setting(
        100_000, "Steps over which exploration falls linearly to final_exploration.", least=1
    )

    @property
    def n(self) -> int:
        """See `EpisodeQSettings`."""
        return 1 if self.learns_at_every_step else self.episodes_per_update

    @property
    def learns_at_every_step(self) -> bool:
        """See `EpisodeQSettings`."""
        return self.update_after == "step"

    def exploration_at(self, timesteps: int) -> float:
        """The share of random actions after so many steps."""
        done = min(timesteps / self.exploration_steps, 1.0)
        return self.exploration + done * (min(self.final_exploration, self.exploration) - self.exploration)


@dataclass(frozen=True)
class QLearningUpdate:
    """Q(s, a) += rate * (r + gamma max_b Q(s', b) - Q(s, a)), at every step or, step by step, after episodes."""

    n_states: int
    n_actions: int
    settings: Leaf[Any]
    """`EpisodeQSettings` or `QLearningSettings`."""

    @classmethod
    def of(
        cls, settings: EpisodeQSettings, observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> QLearningUpdate:
        """For Discrete spaces."""
        if not is_tabular(observation_space, action_space):
            raise ValueError(
                f"{shown_space(observation_space)} and {shown_space(action_space)} are not supported by q_learning: "
                "it learns a table, so both must be Discrete, from 0. "
                f"Use {fitting_agent(action_space)}."
            )
        assert isinstance(observation_space, Discrete)
        assert isinstance(action_space, Discrete)
        return cls(int(observation_space.n), int(action_space.n), settings)

    @property
    def compilable(self) -> bool:
        """It is a table; but a program that learns while it plays is not written."""
        return not self.settings.learns_at_every_step

    @property
    def batch_kind(self) -> BatchKind:
        """It learns from single steps."""
        return "online" if self.settings.learns_at_every_step else "transitions"

    def init(self, key: Array) -> Learner:
        """All values 0."""
        return Learner(jnp.zeros((self.n_states, self.n_actions)), (), (), (), ())

    def learned_table(self, learner: Learner) -> Array:
        """The greedy action, or equally each of several."""
        best: Array = learner.theta == learner.theta.max(axis=-1, keepdims=True)
        return best / best.sum(axis=-1, keepdims=True)

    def exploring_table(self, learner: Learner) -> Array:
        """The greedy action, but a random one with probability epsilon."""
        epsilon: Array = self.settings.exploration
        return (1 - epsilon) * self.learned_table(learner) + epsilon / self.n_actions

    def numpy_policy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Policy, Any]:
        """Either of them as a table."""
        table = self.learned_table(learner) if exploring_at is None else self.exploring_table(learner)
        epsilon = 0.0 if exploring_at is None else float(self.settings.exploration)
        parameters = GreedyParams(np.asarray(table), np.asarray(learner.theta), epsilon)
        return GreedyTable(self.n_states, self.n_actions), parameters

    def exploring_policy(self, table: Any, timesteps: int) -> tuple[EpsilonGreedyTable, QTable]:
        """See `Online`."""
        return EpsilonGreedyTable(self.n_actions), QTable(table, self.settings.exploration_at(timesteps))

    def learn_step(
        self,
        table: Any,
        state: Any,
        action: Any,
        reward: float,
        next_state: Any,
        terminal: bool,
        next_mask: Any = None,
    ) -> float:
        """See `Online`."""
        s = self.settings
        if next_mask is not None and not terminal:  # A state without any action is worth nothing.
            terminal = not next_mask.any()
        next_values = table[next_state] if next_mask is None else table[next_state][next_mask]
        target = reward if terminal else reward + s.gamma * float(next_values.max())
        error = target - float(table[state, action])
        table[state, action] += s.q_learning_rate * error
        return error

    def update(self, learner: Learner, steps: Transitions) -> tuple[Learner, Metrics]:
        """Learn from each step of each episode, in order."""
        s = self.settings
        terminal = steps.terminated if s.bootstrap_on_truncation else steps.last
        if steps.next_masks is not None:  # A state without any action is worth nothing.
            terminal = terminal | ~steps.next_masks.any(axis=-1)
        each = (steps.observations, steps.actions, steps.rewards, steps.next_observations, terminal, steps.mask)
        flat = jax.tree.map(lambda x: x.reshape(-1), each)
        masks = None if steps.next_masks is None else steps.next_masks.reshape(-1, self.n_actions)

        def body(Q: Array, transition: Any) -> tuple[Array, Array]:
            (state, a, r, next_state, terminal, mask), next_mask = transition
            target = r + s.gamma * jnp.where(terminal, 0.0, masked(Q[next_state], next_mask).max())
            error = jnp.where(mask, target - Q[state, a], 0.0)
            # Masked last, not by way of `error`: the same numbers, rounded as they always were.
            step = jnp.where(mask, s.q_learning_rate * (target - Q[state, a]), 0.0)
            return Q.at[state, a].add(step), error**2

        Q, squared_errors = jax.lax.scan(body, learner.theta, (flat, masks))
        updates = steps.mask.sum()
        metrics = {"critic_loss": squared_errors.sum() / updates, "mean_q": Q.mean(), "updates": updates}
        return learner._replace(theta=Q), metrics


register_pytree(QLearningUpdate)


class QLearning(Agent):
    """Maximizes E[G0] by learning the value of each action in each state."""

    name = "q_learning"
    Settings = QLearningSettings
    settings: QLearningSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[QLearningKwargs]
        ) -> None: ...

    def build(self) -> Algorithm:
        """A table of action values."""
        return QLearningUpdate.of(self.settings, self.observation_space, self.action_space)
