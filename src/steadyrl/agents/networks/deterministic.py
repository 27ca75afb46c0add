"""A policy that names one action for each observation, and how it explores around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from steadyrl.agents.networks.action_range import ActionRange
from steadyrl.agents.networks.mlp import Layers
from steadyrl.agents.networks.protocols import Network


class ActorParams(NamedTuple):
    """What a `DeterministicNetwork` acts by."""

    layers: Layers
    spread: float = 0.0
    """Standard deviation of the noise around the policy's action, in halves of the range; infinite for any action."""


@dataclass(frozen=True)
class DeterministicNetwork:
    """Tanh of a network's output, in halves of the range of actions; noise around it is clipped to the range."""

    mlp: Network
    range: ActionRange

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, d]: standard normal."""
        return generator.standard_normal((steps, self.range.dimensions), dtype=np.float32)

    def act(self, parameters: ActorParams, observations: Any, noise: Any, masks: Any = None) -> Any:
        """[k, d]: the policy's action, with noise while exploring, or a uniformly random one."""
        if noise is not None and np.isinf(parameters.spread):
            return 2 * ndtr(noise) - 1  # A normal number's rank is uniform.
        action = np.tanh(self.mlp.apply_numpy(parameters.layers, observations))
        if noise is None or not parameters.spread:
            return action
        return np.clip(action + parameters.spread * noise, -1, 1)

    def to_space(self, actions: Any) -> Any:
        """In the space's units, shape and precision."""
        return self.range.to_space(actions)
