"""Metrics of whole episodes that an environment reports itself, such as `goal_rate` or `visiting_rate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

KEY, OLD_KEY = "episode_metrics", "facts"
"""The key of the metrics in `info`; environments written for version 0.1 use the old one."""


def metrics_info(metrics: dict[str, float]) -> dict[str, Any]:
    """The entries of `info` that report `metrics`; those of an episode's last step are used."""
    return {KEY: metrics, OLD_KEY: metrics}


def metrics_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics in an `info`, under the new key if it has both; empty if it has neither."""
    key = KEY if KEY in info else OLD_KEY
    metrics = info.get(key, {})
    if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
        raise ValueError(f'info["{key}"] of type {type(metrics).__name__} that does not map names to numbers')
    return dict(metrics)


class MetricNames:
    """The names of an environment's episode metrics: those of its first episode, which all others must have too."""

    def __init__(self, is_reserved: Callable[[str], bool] = lambda name: False) -> None:
        """`is_reserved(name)`: whether something else has that name."""
        self._is_reserved = is_reserved
        self._first: tuple[int, set[str]] | None = None

    def check(self, episode: int, metrics: Iterable[str]) -> None:
        """A ValueError if the metrics of an episode have other names than those of the first, or reserved ones."""
        names = set(metrics)
        if self._first is None:
            for name in filter(self._is_reserved, sorted(names)):
                raise ValueError(
                    f"the episode metric {name!r} has the name of something that training records itself. "
                    f'Rename it in info["{KEY}"].'
                )
            self._first = episode, names
        first, expected = self._first
        if names != expected:
            raise ValueError(
                f"episode {episode} ended with the metrics {sorted(names)}, episode {first} with {sorted(expected)}: "
                "their means would be over different episodes. "
                f'Report the same names in info["{KEY}"] at the last step of every episode.'
            )


def stack_metrics(
    episodes: Sequence[Mapping[str, float]], first_episode: int = 0, names: MetricNames | None = None
) -> dict[str, np.ndarray]:
    """The metrics of n episodes as arrays, name -> [n]; errors count episodes from `first_episode`."""
    names = names or MetricNames()
    for episode, metrics in enumerate(episodes, start=first_episode):
        names.check(episode, metrics)
    return {name: np.array([float(metrics[name]) for metrics in episodes]) for name in episodes[0]}
