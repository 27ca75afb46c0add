"""What methods share that learn from a memory of single steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self, cast

import optax
from jax import Array

from steadyrl.agents.algorithm import Algorithm, Learner, Material, Replaying
from steadyrl.agents.settings import AgentSettings, time_out_setting
from steadyrl.memory import Memory
from steadyrl.settings import setting


@dataclass(frozen=True)
class ReplaySettings(AgentSettings):
    """What every method with a replay memory needs. Names are Stable-Baselines3's, where it has one."""

    gamma: float = setting(0.99, "Discount factor of the return.", above=0, most=1)
    learning_rate: float = setting(3e-4, "Step size of the networks.", above=0)
    batch_size: int = setting(256, "Transitions drawn from the memory for an update.", least=1)
    buffer_size: int = setting(1_000_000, "Transitions that the memory holds; then the oldest are forgotten.", least=1)
    learning_starts: int = setting(1000, "Transitions in the memory before the first update.", least=1)
    train_freq: int = setting(50, "Steps of the environment between rounds of updates.", least=1)
    gradient_steps: int | None = setting(
        None, "Updates in such a round; if not given, train_freq: one update a step.", least=1
    )
    time_out_ends: bool | None = time_out_setting()
    hidden: tuple[int, ...] = setting((256, 256), "Sizes of the hidden layers of networks.", least=1)

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        ends = finite if self.time_out_ends is None else self.time_out_ends
        return dataclasses.replace(self, gradient_steps=self.gradient_steps or self.train_freq, time_out_ends=ends)

    @property
    def updates(self) -> int:
        """`gradient_steps`, once it is decided."""
        assert self.gradient_steps is not None, "settings are completed before they are used"
        return self.gradient_steps


class FromMemory:
    """What networks have in common that learn from a memory of single steps."""

    @property
    def material(self) -> Material:
        """It learns from its memory."""
        return "replayed"

    @property
    def compilable(self) -> bool:
        """It is a network."""
        return False

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """All is learned from single steps."""
        return learner


def descended(rate: float, parameters: Any, optimiser: Any, gradient: Any) -> tuple[Any, Any]:
    """Parameters and Adam's state after one step down the gradient."""
    moves, optimiser = optax.adam(rate).update(gradient, optimiser)
    return optax.apply_updates(parameters, moves), optimiser


def memory_of(algorithm: Algorithm) -> Memory | None:
    """An empty memory, if the algorithm learns from one."""
    if algorithm.material != "replayed":
        return None
    replaying = cast(Replaying, algorithm)
    return Memory(replaying.layout.width, replaying.settings.buffer_size)
