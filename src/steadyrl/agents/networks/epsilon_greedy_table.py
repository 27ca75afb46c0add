"""How a table of action values acts: the best action, or now and then any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked


class QTable(NamedTuple):
    """What an `EpsilonGreedyTable` acts by."""

    values: Any
    """[S, A]."""
    epsilon: float


@dataclass(frozen=True)
class EpsilonGreedyTable:
    """The action of the highest value, or any of several such; but with probability epsilon any action at all."""

    n_actions: int
    takes_states: ClassVar[bool] = True

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, 1 + A]: whether to take any action, and a number for each of them, of which the highest wins."""
        return generator.random((steps, 1 + self.n_actions), dtype=np.float32)

    def act(self, parameters: QTable, observations: Any, noise: Any, masks: Any = None) -> Any:
        """[k]: an action for each state."""
        values = masked(parameters.values[observations], masks)
        if noise is None:
            return values.argmax(axis=-1)
        eligible = (values == values.max(axis=-1, keepdims=True)) | (noise[:, :1] < parameters.epsilon)
        eligible = eligible if masks is None else eligible & masks
        return np.where(eligible, noise[:, 1:], -1).argmax(axis=-1)

    def to_space(self, actions: Any) -> Any:
        """As they are."""
        return actions
