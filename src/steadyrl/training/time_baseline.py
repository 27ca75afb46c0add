"""A baseline that depends on time alone: what the other episodes of a batch still collect, on average, at each time."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from steadyrl.training.batch import Steps
from steadyrl.training.returns import rewards_to_go


class TimeBaseline(NamedTuple):
    """Mean rewards to go of the other episodes at the same time; those that have ended count as 0."""

    steps: Steps
    to_go: Array
    """[K, T]: of each step."""
    totals: Array
    """[groups, times]: the sum of them over the episodes of a group; 0 at the last time, when all have ended."""

    @classmethod
    def of(cls, steps: Steps, discount: Any, groups: int = 1) -> TimeBaseline:
        """Of a batch; in equal `groups`, an episode has the baseline of its own group."""
        rows, (K, T) = steps.rows, steps.mask.shape
        to_go = rewards_to_go(steps.rewards, discount, rows)
        times = 1 + (K * T if rows.split else T)
        empty = cls(steps, to_go, jnp.zeros((groups, times)))
        return empty._replace(totals=empty.totals.at[empty._group_of_rows, steps.times].add(to_go * steps.mask))

    def at(self, ahead: Any) -> Array:
        """[K, T]: the baseline of the time that is `ahead` steps [K, T] after each step."""
        rows, ahead = self.steps.rows, jnp.broadcast_to(jnp.asarray(ahead, jnp.float32), self.to_go.shape)
        own = rows.later(self.to_go, self.steps.mask, ahead, jnp.zeros(rows.episodes(self.to_go)))
        total = self._totals(self._group_of_rows, self.steps.times + ahead)
        return (total - own) / self._others

    def after_end(self, ahead: Array) -> Array:
        """[n, k]: the baselines of the times that are `ahead` steps [k] after the end of each episode."""
        return self._totals(self._groups[:, None], self.steps.lengths[:, None] + ahead) / self._others

    @property
    def _groups(self) -> Array:
        n = self.steps.rows.episodes(self.to_go)
        return jnp.arange(n) * len(self.totals) // n

    @property
    def _group_of_rows(self) -> Array:
        return self.steps.rows.spread(self._groups)[:, None]

    @property
    def _others(self) -> int:
        return max(self.steps.rows.episodes(self.to_go) // len(self.totals) - 1, 1)

    def _totals(self, group: Array, time: Array) -> Array:
        return self.totals[group, jnp.minimum(time, self.totals.shape[1] - 1).astype(jnp.int32)]
