"""Whole episodes as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple


class Episodes(NamedTuple):
    """n whole episodes, padded to a common length T. Arrays are NumPy's or JAX's."""

    observations: Any
    """[n, T, ...]: before each step."""
    actions: Any
    """[n, T, ...]."""
    rewards: Any
    """[n, T]: 0 in the padding."""
    mask: Any
    """[n, T]: 1 for a step, 0 for padding."""
    last_observations: Any
    """[n, ...]: after the last step."""
    terminated: Any
    """[n] bool: whether the episode terminated, rather than being truncated by a time limit."""
    episode_metrics: dict[str, Any]
    """name -> [n]: the metrics that the environment reports for each episode, such as `goal_rate`."""
    action_masks: Any = None
    """[n, T, A] bool: which actions were allowed before each step; None if there are no masks."""
    last_action_masks: Any = None
    """[n, A] bool: after the last step."""
