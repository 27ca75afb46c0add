"""TD3: a deterministic policy that climbs one of two critics, which learn from the lower one (Fujimoto et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium.spaces import Box
from jax import Array

from steadyrl.agents.agent import Agent
from steadyrl.agents.networks import ActionRange, ActorParams, Architecture, DeterministicNetwork, Network
from steadyrl.agents.replay import ReplaySettings, ReplayUpdate, adam_step, fitting_agent
from steadyrl.base.pytree import Leaf
from steadyrl.base.settings import setting
from steadyrl.envs.spaces import shown_space
from steadyrl.training.algorithm import Algorithm, Learner, Metrics
from steadyrl.training.replay_buffer import ReplayBatch, TransitionLayout

if TYPE_CHECKING:
    from steadyrl.agents.signatures import TD3Kwargs
    from steadyrl.envs.source import AnyEnv, Source


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
    """Target networks: copies that move slowly."""

    theta: Any
    phi: Any


@dataclass(frozen=True)
class TD3Update(ReplayUpdate):
    """Both critics step towards r + gamma min_i Q_i(s', pi(s') + noise; targets); every second time pi climbs Q_1."""

    policy: DeterministicNetwork
    critic: Network
    settings: Leaf[TD3Settings]

    @classmethod
    def of(
        cls,
        settings: TD3Settings,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        function: Callable[[int], Any] | None = None,
    ) -> TD3Update:
        """For real-valued actions within bounds; with a `function` that makes networks, see `Architecture`."""
        if not isinstance(action_space, Box):
            raise ValueError(
                f"{shown_space(action_space)} is not supported by td3: its actions must be a Box. "
                f"Use {fitting_agent(action_space)}."
            )
        actions = ActionRange.of(action_space)
        if not actions.bounded:
            raise ValueError(
                f"{shown_space(action_space)} is not supported by td3: every action needs a lowest and a highest value."
            )
        layers = Architecture.of(settings, function)
        policy = DeterministicNetwork(layers.network(observation_space, actions.dimensions), actions)
        return cls(policy, layers.network(observation_space, 1, actions.dimensions), settings)

    @property
    def layout(self) -> TransitionLayout:
        """Actions are stored in halves of their range."""
        return TransitionLayout(self.policy.mlp.inputs, self.policy.range.dimensions, self.policy.mlp.takes_bytes)

    def init(self, key: Array) -> Learner:
        """A policy, two critics, and their target networks."""
        k_policy, k_first, k_second, k_noise = jax.random.split(key, 4)
        theta, phi = self.policy.mlp.init(k_policy), [self.critic.init(k_first), self.critic.init(k_second)]
        adam = optax.adam(self.settings.learning_rate)
        start = Learner(theta, adam.init(theta), phi, adam.init(phi), ())
        return start._replace(
            key=jax.random.key_data(k_noise), targets=Targets(theta, phi), updates=jnp.zeros((), jnp.int32)
        )

    def numpy_policy(
        self, learner: Learner, exploring_at: int | None = None
    ) -> tuple[DeterministicNetwork, ActorParams]:
        """The policy's action; while exploring with noise, and before updates start a uniformly random action."""
        layers = jax.tree.map(np.asarray, learner.theta)
        if exploring_at is None:
            return self.policy, ActorParams(layers)
        warm = exploring_at >= self.settings.learning_starts
        return self.policy, ActorParams(layers, self.settings.exploration_noise if warm else np.inf)

    def update(self, learner: Learner, batches: ReplayBatch) -> tuple[Learner, Metrics]:
        """An update from each batch."""
        learner, metrics = jax.lax.scan(self.step, learner, batches._replace(timesteps=()))
        return learner, jax.tree.map(jnp.mean, metrics)

    def step(self, learner: Learner, batch: ReplayBatch) -> tuple[Learner, Metrics]:
        """One step of the critics, and with every `policy_delay`-th one of the policy and all targets."""
        target = self.target(learner, batch)

        def loss(phi: Any) -> tuple[Array, Array]:
            Q_1, Q_2 = self.values(phi, batch.observations, batch.actions)
            errors = Q_1 - target, Q_2 - target
            return (errors[0] ** 2 + errors[1] ** 2).mean(), Q_1.mean()

        (cost, mean_q), gradient = jax.value_and_grad(loss, has_aux=True)(learner.phi)
        phi, optimiser = adam_step(self.settings.learning_rate, learner.phi, learner.phi_optimiser, gradient)
        learner = learner._replace(phi=phi, phi_optimiser=optimiser, updates=learner.updates + 1)
        due = learner.updates % self.settings.policy_delay == 0
        followed: Learner = jax.lax.cond(due, self.follow, lambda learner, _: learner, learner, batch.observations)
        return followed, {"critic_loss": cost, "mean_q": mean_q}

    def target(self, learner: Learner, batch: ReplayBatch) -> Array:
        """[B]: the target of both critics."""
        s, after = self.settings, batch.next_observations
        key = jax.random.fold_in(jax.random.wrap_key_data(learner.key), learner.updates)
        noise = s.target_policy_noise * jax.random.normal(key, batch.actions.shape)
        noise = jnp.clip(noise, -s.target_noise_clip, s.target_noise_clip)
        actions = jnp.clip(jnp.tanh(self.policy.mlp(learner.targets.theta, after)) + noise, -1, 1)
        next_value = jnp.minimum(*self.values(learner.targets.phi, after, actions))
        target: Array = batch.rewards + s.gamma * (1 - batch.terminal) * next_value
        return target

    def follow(self, learner: Learner, observations: Array) -> Learner:
        """One step of the policy up the first critic; then the targets follow all networks."""

        def loss(theta: Any) -> Array:
            actions = jnp.tanh(self.policy.mlp(theta, observations))
            return -self.value(learner.phi[0], observations, actions).mean()

        s, gradient = self.settings, jax.grad(loss)(learner.theta)
        theta, optimiser = adam_step(s.learning_rate, learner.theta, learner.theta_optimiser, gradient)
        targets = optax.incremental_update(Targets(theta, learner.phi), learner.targets, s.tau)
        return learner._replace(theta=theta, theta_optimiser=optimiser, targets=targets)

    def values(self, phi: Any, observations: Array, actions: Array) -> tuple[Array, Array]:
        """Q_1 and Q_2, [B] each. As two products: XLA's batched one is slower."""
        return self.value(phi[0], observations, actions), self.value(phi[1], observations, actions)

    def value(self, layers: Any, observations: Array, actions: Array) -> Array:
        """Q of one critic, [B]."""
        return self.critic(layers, jnp.concatenate([observations, actions], axis=-1))[..., 0]


class TD3(Agent):
    """Maximizes E[G0] with a deterministic policy that climbs a learned value. For Box actions within bounds."""

    name = "td3"
    Settings = TD3Settings
    settings: TD3Settings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[TD3Kwargs]
        ) -> None: ...

    def build(self) -> Algorithm:
        """A policy and two critics."""
        return TD3Update.of(self.settings, self.observation_space, self.action_space, self.network_function)
