"""DQN: Q-learning with a network, a replay memory and a target network (Mnih et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium.spaces import Discrete
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.algorithm import Algorithm, Learner
from steadyrl.agents.replay import FromMemory, ReplaySettings, descended
from steadyrl.memory import Layout, Replayed
from steadyrl.networks import MLP, EpsilonGreedy, Valued
from steadyrl.settings import setting
from steadyrl.spaces import feature_count


@dataclass(frozen=True)
class DQNSettings(ReplaySettings):
    """Settings of DQN. Learning rate, batch size and layers are the paper's for LunarLander."""

    learning_rate: float = setting(7e-4, "Step size of the network.", above=0)
    batch_size: int = setting(64, "Transitions drawn from the memory for an update.", least=1)
    buffer_size: int = setting(100_000, "Transitions that the memory holds; then the oldest are forgotten.", least=1)
    train_freq: int = setting(4, "Steps of the environment between rounds of updates.", least=1)
    hidden: tuple[int, ...] = setting((128, 128), "Sizes of the hidden layers of the network.", least=1)
    target_update_interval: int = setting(
        500, "Steps of the environment between moves of the target network towards the network.", least=1
    )
    tau: float = setting(1.0, "How far it moves each time; with 1 it becomes a copy.", above=0, most=1)
    exploration_initial_eps: float = setting(1.0, "The share of random actions at the start.", least=0, most=1)
    exploration_final_eps: float = setting(0.05, "The share of random actions in the end.", least=0, most=1)
    exploration_steps: int = setting(10_000, "Steps over which the one becomes the other, in a line.", least=1)
    double: bool = setting(
        False, "Whether the network chooses the next action that the target network values (van Hasselt et al. 2016)."
    )
    huber: bool = setting(
        False,
        "Whether errors above 1 count as they are rather than squared, which is steadier; but where rewards are noisy, "
        "values are then no longer means.",
    )


@dataclass(frozen=True)
class DeepQ(FromMemory):
    """One step of Q(s, a; theta) towards r + gamma max_b Q(s', b; target), for each batch."""

    policy: EpsilonGreedy
    settings: DQNSettings

    @classmethod
    def of(cls, settings: DQNSettings, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> DeepQ:
        """For numbered actions."""
        if not isinstance(action_space, Discrete):
            raise ValueError(f"{action_space} is not supported by dqn: its actions must be Discrete. Use td3.")
        sizes = (feature_count(observation_space), *settings.hidden, int(action_space.n))
        return cls(EpsilonGreedy(MLP(sizes), int(action_space.start)), settings)

    @property
    def layout(self) -> Layout:
        """Actions are kept by their number."""
        return Layout(self.policy.mlp.sizes[0], 1)

    def init(self, key: Array) -> Learner:
        """A network, and its copy."""
        theta = self.policy.mlp.init(key)
        optimiser = optax.adam(self.settings.learning_rate).init(theta)
        return Learner(theta, optimiser, (), (), (), targets=theta)

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[EpsilonGreedy, Valued]:
        """The best action, or while learning at times a random one."""
        s, layers = self.settings, jax.tree.map(np.asarray, learner.theta)
        if exploring_at is None:
            return self.policy, Valued(layers)
        gone = min(exploring_at / s.exploration_steps, 1.0)
        eps = s.exploration_initial_eps + gone * (s.exploration_final_eps - s.exploration_initial_eps)
        return self.policy, Valued(layers, eps)

    def update(self, learner: Learner, replayed: Replayed) -> tuple[Learner, Array]:
        """An update from each batch; before them the target network moves, as often as was due since the last round."""
        s, t = self.settings, replayed.timesteps
        moves = t // s.target_update_interval - (t - s.train_freq) // s.target_update_interval
        targets = optax.incremental_update(learner.theta, learner.targets, 1 - jnp.power(1 - s.tau, moves))
        batches = replayed._replace(timesteps=())
        learner = learner._replace(targets=targets)
        learner, _ = jax.lax.scan(lambda so_far, batch: (self.step(so_far, batch), None), learner, batches)
        return learner, jnp.int32(len(replayed.rewards))

    def step(self, learner: Learner, batch: Replayed) -> Learner:
        """One step of the network."""
        s, Q = self.settings, self.policy.mlp
        beyond = Q(learner.targets, batch.next_observations)
        choosing = Q(learner.theta, batch.next_observations) if s.double else beyond
        value = _chosen(beyond, choosing.argmax(axis=-1))
        target = batch.rewards + s.gamma * (1 - batch.ends) * value

        def loss(theta: Any) -> Array:
            error = _chosen(Q(theta, batch.observations), batch.actions[:, 0].astype(int)) - target
            cost: Array = optax.huber_loss(error) if s.huber else error**2 / 2
            return cost.mean()

        gradient = jax.grad(loss)(learner.theta)
        theta, optimiser = descended(s.learning_rate, learner.theta, learner.theta_optimiser, gradient)
        return learner._replace(theta=theta, theta_optimiser=optimiser)


def _chosen(values: Array, actions: Array) -> Array:
    """[B]: the value of one action in each row of [B, A]; as a product, for a gather's gradient is slow."""
    return (values * jax.nn.one_hot(actions, values.shape[-1])).sum(axis=-1)


class DQN(Agent):
    """Maximises E[G0] by learning the value of each action with a network. For Discrete actions."""

    name = "dqn"
    Settings = DQNSettings
    settings: DQNSettings

    def build(self) -> Algorithm:
        """A network of action values."""
        return DeepQ.of(self.settings, self.observation_space, self.action_space)
