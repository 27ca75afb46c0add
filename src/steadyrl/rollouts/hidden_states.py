"""The hidden states of a recurrent policy in episodes that are played at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class HiddenStates:
    """The states of some of n episodes. They are changed in place, for all that share them."""

    states: NDArray[np.float32]
    """[n, size]."""
    rows: NDArray[np.intp]
    """[k]: the episodes that are read and written here."""

    @classmethod
    def zeros(cls, episodes: int, size: int) -> HiddenStates:
        """At the start of episodes."""
        return cls(np.zeros((episodes, size), np.float32), np.arange(episodes))

    def of(self, rows: Any) -> HiddenStates:
        """Those of some of the episodes here."""
        return HiddenStates(self.states, self.rows[rows])

    def read(self) -> NDArray[np.float32]:
        """[k, size]: a copy."""
        return self.states[self.rows]

    def write(self, states: Any) -> None:
        """The states after a step."""
        self.states[self.rows] = states
