"""The interface of simulators, which step many episodes at once, one per slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from steadyrl.base.shown import shown
from steadyrl.envs.spaces import flat


class SlotError(Exception):
    """An episode cannot continue; raised from the cause. `slot` is None if it is not known which episode."""

    def __init__(self, slot: int | None, what: str, remedy: str = "Fix the environment.") -> None:
        super().__init__(what)
        self.slot, self.remedy = slot, remedy


def row_of(space: gym.Space[Any], shape: tuple[int, ...], dtype: Any, slot: int, observation: Any) -> Any:
    """One observation as a row of a simulator's array, checked to have the row's `shape`."""
    try:
        row = np.asarray(flat(space, observation))
        found, row = row.shape, row.astype(dtype, copy=False)
    except Exception as error:
        raise SlotError(slot, f"observation {shown(observation)} that is not in {space}") from error
    if found != shape:  # NumPy would silently broadcast a scalar over the row.
        raise SlotError(slot, f"observation of shape {found} that is not in {space}")
    return row


class StepResult(NamedTuple):
    """One step of k episodes."""

    observations: Any
    """[k, ...]: after the step; a new array, which the simulator does not modify later."""
    rewards: Any
    """[k]: float64."""
    terminated: Any
    """[k] bool."""
    truncated: Any
    """[k] bool."""
    episode_metrics: dict[int, dict[str, float]]
    """slot -> metrics of the episode, for episodes that ended with this step."""


class Simulator(Protocol):
    """Up to `size` episodes at once. An episode depends on its seed and its actions, not on other episodes.

    One whose environments may mask actions has `action_masks`: [n, A] bool, which actions are allowed in each slot
    after the last reset or step there, or None if there are no masks. For several choices at once, A is the sum of all.
    """

    observation_space: gym.Space[Any]
    """Of a single episode."""
    action_space: gym.Space[Any]
    """Of a single episode."""
    size: int
    idle_steps: int
    """Steps simulated in slots without an active episode."""

    def reset(self, seeds: Sequence[int]) -> Any:
        """Start an episode from each of at most `size` seeds, in slots 0, 1, ...; returns observations [n, ...]."""
        ...

    def step(self, slots: Any, actions: Any) -> StepResult:
        """One step in each of the `slots` [k], in ascending order, with `actions` [k, ...] in the action space."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
