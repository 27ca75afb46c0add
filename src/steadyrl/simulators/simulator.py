"""What a collector asks of the place where episodes happen: many of them side by side, each in a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from steadyrl.spaces import flat


class SlotError(Exception):
    """An episode cannot go on; raised from what went wrong. `slot` is None where it cannot be told which episode."""

    def __init__(self, slot: int | None, what: str, remedy: str = "Mend the environment.") -> None:
        super().__init__(what)
        self.slot, self.remedy = slot, remedy


def row_of(space: gym.Space[Any], shape: tuple[int, ...], slot: int, observation: Any) -> Any:
    """One observation as a simulator's arrays hold it, in the `shape` that all have."""
    try:
        row = flat(space, observation)
    except Exception as error:
        raise SlotError(slot, f"observation {observation!r} that is not in {space}") from error
    if np.shape(row) != shape:  # NumPy would spread a number over a row without a word.
        raise SlotError(slot, f"observation of shape {np.shape(row)} that is not in {space}")
    return row


class Steps(NamedTuple):
    """One step of k episodes."""

    observations: Any
    """[k, ...]: what the agent sees now; an array of its own, never written to again."""
    rewards: Any
    """[k]: 64 bits."""
    terminated: Any
    """[k] bool: the episode came to an end of its own."""
    truncated: Any
    """[k] bool: the episode came to a time limit."""
    facts: dict[int, dict[str, float]]
    """slot -> what the environment says of the episode that ended there with this step."""


class Simulator(Protocol):
    """Up to `size` episodes at once. An episode depends on its seed and its actions, not on what its neighbours do."""

    observation_space: gym.Space[Any]
    """Of a single episode."""
    action_space: gym.Space[Any]
    """Of a single episode."""
    size: int
    idle_steps: int
    """How many steps were simulated in slots whose episode was over or had not been asked for."""

    def reset(self, seeds: Sequence[int]) -> Any:
        """Start an episode from each of at most `size` seeds, in slots 0, 1, ...; their observations [n, ...]."""
        ...

    def step(self, slots: Any, actions: Any) -> Steps:
        """One step in each of the `slots` [k], in ascending order, with `actions` [k, ...] of the action space."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
