"""DQN: Q-learning with a network, a replay buffer and a target network (Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium.spaces import Discrete
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.networks import Architecture, EpsilonGreedy, QParams
from steadyrl.agents.networks.masks import masked
from steadyrl.agents.replay import ReplaySettings, ReplayUpdate, adam_step, fitting_agent
from steadyrl.agents.settings import hidden_setting
from steadyrl.base.pytree import Leaf
from steadyrl.base.settings import override, setting
from steadyrl.envs.spaces import shown_space
from steadyrl.training.algorithm import Algorithm, Learner, Metrics
from steadyrl.training.replay_buffer import ReplayBatch, TransitionLayout

if TYPE_CHECKING:
    from steadyrl.agents.signatures import DQNKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class DQNSettings(ReplaySettings):
    """Settings of DQN. Learning rate, batch size and layers are the paper's for LunarLander."""

    learning_rate: float = override(ReplaySettings, "learning_rate", 7e-4)
    batch_size: int = override(ReplaySettings, "batch_size", 64)
    buffer_size: int = override(ReplaySettings, "buffer_size", 100_000)
    train_freq: int = override(ReplaySettings, "train_freq", 4)
    hidden: tuple[int, ...] = hidden_setting(128, 128)
    target_update_interval: int = setting(
        500, "Steps of the environment between moves of the target network towards the network.", least=1
    )
    tau: float = setting(1.0, "How far it moves each time; with 1 it becomes a copy of the network.", above=0, most=1)
    exploration_initial_eps: float = setting(1.0, "The share of random actions at the start.", least=0, most=1)
    exploration_final_eps: float = setting(0.05, "The share of random actions in the end.", least=0, most=1)
    exploration_steps: int = setting(10_000, "Steps over which the one falls linearly to the other.", least=1)
    double: bool = setting(
        False, "Whether the network chooses the next action that the target network values (van Hasselt et al. 2016)."
    )
    huber: bool = setting(
        False,
        "Whether errors above 1 count as they are rather than squared, which is steadier; but where rewards are noisy, "
        "values are then no longer means.",
    )


@dataclass(frozen=True)
class DQNUpdate(ReplayUpdate):
    """One step of Q(s, a; theta) towards r + gamma max_b Q(s', b; target), for each batch."""

    policy: EpsilonGreedy
    settings: Leaf[DQNSettings]

    @classmethod
    def of(
        cls,
        settings: DQNSettings,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        function: Callable[[int], Any] | None = None,
    ) -> DQNUpdate:
        """For Discrete actions; with a `function` that makes networks, see `Architecture`."""
        if not isinstance(action_space, Discrete):
            raise ValueError(
                f"{shown_space(action_space)} is not supported by dqn: its actions must be Discrete. "
                f"Use {fitting_agent(action_space)}."
            )
        network = Architecture.of(settings, function).network(observation_space, int(action_space.n))
        return cls(EpsilonGreedy(network, int(action_space.start)), settings)

    @property
    def layout(self) -> TransitionLayout:
        """Actions are stored as their index."""
        return TransitionLayout(self.policy.mlp.inputs, 1, self.policy.mlp.takes_bytes)

    def init(self, key: Array) -> Learner:
        """A network, and its target network."""
        theta = self.policy.mlp.init(key)
        optimiser = optax.adam(self.settings.learning_rate).init(theta)
        return Learner(theta, optimiser, (), (), (), targets=theta)

    def numpy_policy(self, learner: Learner, exploring_at: int | None = None) -> tuple[EpsilonGreedy, QParams]:
        """The greedy action, or while exploring sometimes a random one."""
        s, layers = self.settings, jax.tree.map(np.asarray, learner.theta)
        if exploring_at is None:
            return self.policy, QParams(layers)
        progress = min(exploring_at / s.exploration_steps, 1.0)
        eps = s.exploration_initial_eps + progress * (s.exploration_final_eps - s.exploration_initial_eps)
        return self.policy, QParams(layers, eps)

    def update(self, learner: Learner, batches: ReplayBatch) -> tuple[Learner, Metrics]:
        """An update from each batch; before them the target network moves, as often as was due since the last round."""
        s, t = self.settings, batches.timesteps
        moves = t // s.target_update_interval - (t - s.train_freq) // s.target_update_interval
        targets = optax.incremental_update(learner.theta, learner.targets, 1 - jnp.power(1 - s.tau, moves))
        learner = learner._replace(targets=targets)
        learner, metrics = jax.lax.scan(self.step, learner, batches._replace(timesteps=()))
        return learner, jax.tree.map(jnp.mean, metrics)

    def step(self, learner: Learner, batch: ReplayBatch) -> tuple[Learner, Metrics]:
        """One step of the network."""
        s, Q = self.settings, self.policy.mlp
        next_values = Q(learner.targets, batch.next_observations)
        choosing = Q(learner.theta, batch.next_observations) if s.double else next_values
        next_value = _at(next_values, masked(choosing, batch.next_masks).argmax(axis=-1))
        if batch.next_masks is not None:  # A state without any action is worth nothing.
            next_value = jnp.where(batch.next_masks.any(axis=-1), next_value, 0)
        target = batch.rewards + s.gamma * (1 - batch.terminal) * next_value

        def loss(theta: Any) -> tuple[Array, Array]:
            value = _at(Q(theta, batch.observations), batch.actions[:, 0].astype(int))
            error = value - target
            cost: Array = optax.huber_loss(error) if s.huber else error**2 / 2
            return cost.mean(), value.mean()

        (cost, mean_q), gradient = jax.value_and_grad(loss, has_aux=True)(learner.theta)
        theta, optimiser = adam_step(s.learning_rate, learner.theta, learner.theta_optimiser, gradient)
        return learner._replace(theta=theta, theta_optimiser=optimiser), {"critic_loss": cost, "mean_q": mean_q}


def _at(values: Array, actions: Array) -> Array:
    """[B]: the value of one action in each row of [B, A]; as a product, for a gather's gradient is slow."""
    return (values * jax.nn.one_hot(actions, values.shape[-1])).sum(axis=-1)


class DQN(Agent):
    """Maximizes E[G0] by learning the value of each action with a network. For Discrete actions."""

    name = "dqn"
    Settings = DQNSettings
    settings: DQNSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[DQNKwargs]
        ) -> None: ...

    def build(self) -> Algorithm:
        """A network of action values."""
        return DQNUpdate.of(self.settings, self.observation_space, self.action_space, self.network_function)
