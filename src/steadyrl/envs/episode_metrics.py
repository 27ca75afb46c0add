"""Metrics of whole episodes that an environment reports itself, such as `goal_rate` or `visiting_rate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

KEY, OLD_KEY = "episode_metrics", "facts"
"""The key of the metrics in `info`; environments written for version 0.1 use the old one."""


def metrics_info(metrics: dict[str, float]) -> dict[str, Any]:
    """The entries of `info` that report `metrics`; those of an episode's last step are used."""
    return {KEY: metrics, OLD_KEY: metrics}


def metrics_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics in an `info`, under the new key if it has both; empty if it has neither."""
    return dict(info.get(KEY, info.get(OLD_KEY, {})))


def stack_metrics(episodes: Sequence[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """The metrics of n episodes as arrays: name -> [n]."""
    names = episodes[0].keys()
    for index, metrics in enumerate(episodes):
        if metrics.keys() != names:
            raise ValueError(
                f"episode {index} ended with the metrics {sorted(metrics)}, episode 0 with {sorted(names)}: "
                "their means would be over different episodes. "
                f'Report the same names in info["{KEY}"] at the last step of every episode.'
            )
    return {name: np.array([float(metrics[name]) for metrics in episodes]) for name in names}
