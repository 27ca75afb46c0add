"""A finite Markov decision process as arrays, used by `exact` and by compiled training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """S states, A actions and K possible outcomes per state-action pair; pad unused outcomes with probability 0.

    An episode starts in a state drawn from `initial` and ends with the first outcome whose `ends` is true, or after
    `horizon` steps. There is no reward after the end.
    """

    next_state: NDArray[np.int32]
    """[S, A, K]: the next state."""
    reward: NDArray[np.float64]
    """[S, A, K]: the reward."""
    ends: NDArray[np.bool_]
    """[S, A, K]: whether the outcome terminates the episode."""
    probability: NDArray[np.float64]
    """[S, A, K]: the probability of the outcome, given state and action."""
    initial: NDArray[np.float64]
    """[S]: the initial state distribution."""
    horizon: int
    """The maximum number of steps in an episode."""

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=dtype))
        shape = self.next_state.shape
        if len(shape) != 3 or self.initial.shape != shape[:1]:
            raise ValueError(
                f"next_state has shape {shape} and initial {self.initial.shape}: expected [S, A, K] and [S]."
            )
        for name in ("reward", "ends", "probability"):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, next_state {shape}: they must match.")
        if np.any((self.next_state < 0) | (self.next_state >= shape[0])):
            raise ValueError(f"next_state holds values outside 0..{shape[0] - 1}, the states of this MDP.")
        if not np.all(np.isfinite(self.reward)):
            raise ValueError("reward holds NaN or infinity: every outcome needs a finite reward.")
        for name in ("probability", "initial"):
            p = getattr(self, name)
            if np.any(p < 0) or not np.allclose(p.sum(axis=-1), 1, rtol=0, atol=1e-9):
                raise ValueError(f"{name} must be non-negative and sum to 1 over its last axis.")
        if self.horizon < 1:
            raise ValueError(f"horizon={self.horizon}: an episode has at least one step.")

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return int(self.next_state.shape[0])

    @property
    def n_actions(self) -> int:
        """A, the number of actions."""
        return int(self.next_state.shape[1])


_DTYPES = {
    "next_state": np.int32,
    "reward": np.float64,
    "ends": np.bool_,
    "probability": np.float64,
    "initial": np.float64,
}
