"""How action values act: the best action, or now and then any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked
from steadyrl.agents.networks.mlp import Layers
from steadyrl.agents.networks.protocols import Network


class QParams(NamedTuple):
    """What an `EpsilonGreedy` policy acts by."""

    layers: Layers
    epsilon: float = 0.0


@dataclass(frozen=True)
class EpsilonGreedy:
    """The action of the highest output of a network, but with probability epsilon any action, equally likely."""

    mlp: Network
    first: int
    """The number that the space counts actions from."""

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, 2]: whether to take any action, and which."""
        return generator.random((steps, 2), dtype=np.float32)

    def act(self, parameters: QParams, observations: Any, noise: Any, masks: Any = None) -> Any:
        """[k]: the number of an action for each observation [k, inputs]."""
        best = masked(self.mlp.apply_numpy(parameters.layers, observations), masks).argmax(axis=-1)
        if noise is None or not parameters.epsilon:
            return best
        # float32 draws end below 1, but their product with a whole number may be rounded up to it.
        number = self.mlp.outputs if masks is None else masks.sum(axis=-1)
        any_action = np.minimum((noise[:, 1] * number).astype(best.dtype), number - 1)
        if masks is not None:  # The number of an action among those that are allowed.
            any_action = (masks.cumsum(axis=-1) > any_action[:, None]).argmax(axis=-1)
        return np.where(noise[:, 0] < parameters.epsilon, any_action, best)

    def to_space(self, actions: Any) -> Any:
        """Counted from the space's first action."""
        return actions + self.first if self.first else actions
