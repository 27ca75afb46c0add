"""What methods share that learn from a replay buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import optax
from gymnasium.spaces import Box, Discrete
from jax import Array

from steadyrl.agents.settings import UNLESS_FINITE, NetworkSettings, bootstrap_setting, hidden_setting
from steadyrl.base.pytree import register_pytree
from steadyrl.base.settings import Rule, setting
from steadyrl.training.algorithm import BatchKind, Learner
from steadyrl.training.replay_buffer import ReplayBuffer


@dataclass(frozen=True)
class ReplaySettings(NetworkSettings):
    """What every method with a replay buffer needs. Names are Stable-Baselines3's, where it has one."""

    learning_rate: float = setting(3e-4, "Step size of the networks.", above=0)
    batch_size: int = setting(256, "Transitions sampled from the replay buffer for an update.", least=1)
    buffer_size: int = setting(1_000_000, "Transitions that the replay buffer holds; then the oldest go.", least=1)
    learning_starts: int = setting(1000, "Transitions in the replay buffer before the first update.", least=1)
    train_freq: int = setting(50, "Steps of the environment between rounds of updates.", least=1)
    gradient_steps: int = setting(
        Rule(lambda s, env: s.train_freq, "train_freq: one update for each step"), "Updates in such a round.", least=1
    )
    bootstrap_on_truncation: bool = bootstrap_setting(UNLESS_FINITE)
    network: str = setting(
        Rule(lambda s, env: "cnn" if env.images else "mlp", "auto"),
        "What is learned: an 'mlp' (dense layers), a 'cnn' (convolutions of images, then dense layers), or 'auto': "
        "convolutions for images. Also a description of layers or a function, which is recorded as 'custom'. Only "
        "policy gradients have recurrent ones.",
        choices=("auto", "mlp", "cnn", "custom"),
    )
    hidden: tuple[int, ...] = hidden_setting(256, 256)


class ReplayUpdate:
    """What updates from a replay buffer have in common; subclasses are frozen dataclasses and pytrees."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register_pytree(cls)

    @property
    def batch_kind(self) -> BatchKind:
        """See `Algorithm`."""
        return "replay"

    @property
    def compilable(self) -> bool:
        """It is a network."""
        return False

    def before_updates(self, learner: Learner, replay_buffer: ReplayBuffer) -> Learner:
        """Everything is learned from the rows that are sampled."""
        return learner

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """Everything is learned from single steps."""
        return learner


def fitting_agent(action_space: gym.Space[Any]) -> str:
    """Which agent is for such actions, in a message."""
    if isinstance(action_space, Discrete):
        return "dqn"
    return "td3" if isinstance(action_space, Box) else "a policy gradient, such as mg or ppo"


def adam_step(rate: Any, parameters: Any, optimiser: Any, gradient: Any) -> tuple[Any, Any]:
    """Parameters and Adam's state after one step down the gradient."""
    moves, optimiser = optax.adam(rate).update(gradient, optimiser)
    return optax.apply_updates(parameters, moves), optimiser
