"""TD3: a deterministic policy that climbs one of two critics, which learn from the lower one (Fujimoto et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium.spaces import Box
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.algorithm import Algorithm, Learner
from steadyrl.agents.replay import FromMemory, ReplaySettings, descended
from steadyrl.memory import Layout, Replayed
from steadyrl.networks import MLP, ActionRange, DeterministicNetwork, Directed
from steadyrl.settings import setting
from steadyrl.spaces import feature_count


@dataclass(frozen=True)
class TD3Settings(ReplaySettings):
    """Settings of TD3. Learning rate, batch size and layers are the paper's for HalfCheetah, the noises TD3's own."""

    tau: float = setting(0.005, "How far the targets move towards the networks each time.", above=0, most=1)
    policy_delay: int = setting(2, "Updates of the critics for each one of the policy and the targets.", least=1)
    exploration_noise: float = setting(
        0.1, "Standard deviation of the noise on actions while learning, in halves of their range.", least=0
    )
    target_policy_noise: float = setting(
        0.2, "Standard deviation of the noise on the actions that targets are for, in the same unit.", least=0
    )
    target_noise_clip: float = setting(0.5, "How far that noise may go, in the same unit.", least=0)


class Targets(NamedTuple):
    """Copies that move slowly."""

    theta: Any
    phi: Any


@dataclass(frozen=True)
class TwinDelayed(FromMemory):
    """Both critics step towards r + gamma min_i Q_i(s', pi(s') + noise; targets); every second time pi climbs Q_1."""

    policy: DeterministicNetwork
    critic: MLP
    settings: TD3Settings

    @classmethod
    def of(cls, settings: TD3Settings, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> TwinDelayed:
        """For real-valued actions within bounds."""
        if not isinstance(action_space, Box):
            raise ValueError(f"{action_space} is not supported by td3: its actions must be a Box. Use dqn.")
        actions, inputs = ActionRange.of(action_space), feature_count(observation_space)
        if not actions.bounded:
            raise ValueError(
                f"{action_space} is not supported by td3: every action needs a lowest and a highest value."
            )
        policy = DeterministicNetwork(MLP((inputs, *settings.hidden, actions.dimensions)), actions)
        return cls(policy, MLP((inputs + actions.dimensions, *settings.hidden, 1)), settings)

    @property
    def layout(self) -> Layout:
        """Actions are kept in halves of their range."""
        return Layout(self.policy.mlp.sizes[0], self.policy.range.dimensions)

    def init(self, key: Array) -> Learner:
        """A policy, two critics, and copies of them."""
        k_policy, k_first, k_second, k_noise = jax.random.split(key, 4)
        theta, phi = self.policy.mlp.init(k_policy), [self.critic.init(k_first), self.critic.init(k_second)]
        adam = optax.adam(self.settings.learning_rate)
        start = Learner(theta, adam.init(theta), phi, adam.init(phi), ())
        return start._replace(
            key=jax.random.key_data(k_noise), targets=Targets(theta, phi), updates=jnp.zeros((), jnp.int32)
        )

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[DeterministicNetwork, Directed]:
        """What the policy says; while learning with noise, and before that starts, any action."""
        layers = jax.tree.map(np.asarray, learner.theta)
        if exploring_at is None:
            return self.policy, Directed(layers)
        warm = exploring_at >= self.settings.learning_starts
        return self.policy, Directed(layers, self.settings.exploration_noise if warm else np.inf)

    def update(self, learner: Learner, replayed: Replayed) -> tuple[Learner, Array]:
        """An update from each batch."""
        batches = replayed._replace(timesteps=())
        learner, _ = jax.lax.scan(lambda so_far, batch: (self.step(so_far, batch), None), learner, batches)
        return learner, jnp.int32(len(replayed.rewards))

    def step(self, learner: Learner, batch: Replayed) -> Learner:
        """One step of the critics, and with every `policy_delay`-th one of the policy and all targets."""
        target = self.target(learner, batch)

        def loss(phi: Any) -> Array:
            errors = [Q - target for Q in self.values(phi, batch.observations, batch.actions)]
            return (errors[0] ** 2 + errors[1] ** 2).mean()

        gradient = jax.grad(loss)(learner.phi)
        phi, optimiser = descended(self.settings.learning_rate, learner.phi, learner.phi_optimiser, gradient)
        learner = learner._replace(phi=phi, phi_optimiser=optimiser, updates=learner.updates + 1)
        due = learner.updates % self.settings.policy_delay == 0
        followed: Learner = jax.lax.cond(due, self.follow, lambda learner, _: learner, learner, batch.observations)
        return followed

    def target(self, learner: Learner, batch: Replayed) -> Array:
        """[B]: what both critics should say."""
        s, after = self.settings, batch.next_observations
        key = jax.random.fold_in(jax.random.wrap_key_data(learner.key), learner.updates)
        noise = s.target_policy_noise * jax.random.normal(key, batch.actions.shape)
        noise = jnp.clip(noise, -s.target_noise_clip, s.target_noise_clip)
        actions = jnp.clip(jnp.tanh(self.policy.mlp(learner.targets.theta, after)) + noise, -1, 1)
        beyond = jnp.minimum(*self.values(learner.targets.phi, after, actions))
        target: Array = batch.rewards + s.gamma * (1 - batch.ends) * beyond
        return target

    def follow(self, learner: Learner, observations: Array) -> Learner:
        """One step of the policy up the first critic; then the targets follow all networks."""

        def loss(theta: Any) -> Array:
            actions = jnp.tanh(self.policy.mlp(theta, observations))
            return -self.value(learner.phi[0], observations, actions).mean()

        s, gradient = self.settings, jax.grad(loss)(learner.theta)
        theta, optimiser = descended(s.learning_rate, learner.theta, learner.theta_optimiser, gradient)
        targets = optax.incremental_update(Targets(theta, learner.phi), learner.targets, s.tau)
        return learner._replace(theta=theta, theta_optimiser=optimiser, targets=targets)

    def values(self, phi: Any, observations: Array, actions: Array) -> tuple[Array, Array]:
        """Q_1 and Q_2, [B] each. As two products: XLA's batched one is slower."""
        return self.value(phi[0], observations, actions), self.value(phi[1], observations, actions)

    def value(self, layers: Any, observations: Array, actions: Array) -> Array:
        """Q of one critic, [B]."""
        return self.critic(layers, jnp.concatenate([observations, actions], axis=-1))[..., 0]


class TD3(Agent):
    """Maximises E[G0] with a deterministic policy that climbs a learned value. For Box actions within bounds."""

    name = "td3"
    Settings = TD3Settings
    settings: TD3Settings

    def build(self) -> Algorithm:
        """A policy and two critics."""
        return TwinDelayed.of(self.settings, self.observation_space, self.action_space)
