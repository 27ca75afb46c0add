"""The steps of episodes as rows of equal length, [K, B], and what is computed along episodes there.

Padded, each episode is one row, and all rows are as long as the longest of them. Packed, rows are short and an episode
takes as many as it needs, one after the other, so that little of a batch is padding. Formulas that are written with
`Rows` serve both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

ROW = 32
"""Steps in a row of a packed batch: on average, half a row of each episode is padding."""
PART_ROWS = 8
"""Rows that are taken at once where episodes come in turn: fewer would not keep the cores busy."""


class Rows(NamedTuple):
    """Which episode each row is of; without fields, each episode is one row."""

    episode: Any = None
    """[K]: the episode, ascending; rows without steps, at the end, count as the last episode's."""
    start: Any = None
    """[K]: the time of the first step."""
    first: Any = None
    """[n]: the first row of each episode."""
    stop: Any = None
    """[n]: the row after its last."""

    @classmethod
    def of(cls, lengths: Any, K: int) -> Rows:
        """K rows, of which the last are empty, for episodes of these lengths [n]. NumPy."""
        counts = rows_needed(lengths)
        first = np.cumsum(counts) - counts
        episode = np.full(K, len(lengths) - 1)
        episode[: counts.sum()] = np.repeat(np.arange(len(lengths)), counts)
        start = (np.arange(K) - first[episode]) * ROW
        return cls(*(x.astype(np.int32) for x in (episode, start, first, first + counts)))

    @property
    def split(self) -> bool:
        """Whether an episode may take several rows."""
        return self.episode is not None

    @property
    def continued(self) -> Array:
        """[K]: 1 where the next row is of the same episode, else 0."""
        same = self.episode[1:] == self.episode[:-1]
        return jnp.concatenate([same, jnp.zeros(1, bool)]).astype(jnp.float32)

    def episodes(self, x: Array) -> int:
        """How many there are in `x` [K, ...]."""
        return len(self.first) if self.split else len(x)

    def times(self, B: int) -> Array:
        """The time of each step: [K, B], or [B] if it is the same in all rows."""
        return jnp.arange(B) if self.start is None else self.start[:, None] + jnp.arange(B)

    def spread(self, x: Array) -> Array:
        """[n, ...] to [K, ...]: what belongs to an episode, for each of its rows."""
        return x[self.episode] if self.split else x

    def total(self, x: Array) -> Array:
        """[K, ...] to [n, ...]: sums over the rows of each episode."""
        if not self.split:
            return x
        return jax.ops.segment_sum(x, self.episode, len(self.first), indices_are_sorted=True)

    def following(self, x: Array) -> Array:
        """[..., B]: x of the next step of the episode; 0 after its last row."""
        after = jnp.zeros_like(x[..., :1])
        if self.split:
            after = after.at[:-1].set(x[1:, :1]) * self.continued[:, None]
        return jnp.concatenate([x[..., 1:], after], axis=-1)

    def sum_before(self, x: Array) -> Array:
        """[..., B]: the sum of x over the earlier steps of the episode."""
        within = jnp.cumsum(x, axis=-1) - x
        if not self.split:
            return within

        def later(before: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
            total, continued = row
            return continued * (before + total), before

        _, before = jax.lax.scan(later, jnp.zeros_like(x[0, 0]), (x.sum(axis=-1), self.continued))
        return within + before[:, None]

    def later(self, x: Array, mask: Array, ahead: Array, at_end: Array) -> Array:
        """[K, B]: x of the step that comes `ahead` steps [K, B] later; after the last of n episodes, `at_end` [n].

        `mask` is 1 for the steps of episodes, else 0.
        """
        K, B = x.shape
        # The rows of an episode follow each other: its steps do too, if all are put in line.
        first = self.spread(self.first)[:, None] if self.split else jnp.arange(K)[:, None]
        end = first * B + self.spread(self.total(mask.sum(axis=-1))).astype(jnp.int32)[:, None]
        place = jnp.arange(K * B).reshape(K, B) + jnp.minimum(ahead, K * B).astype(jnp.int32)
        return jnp.where(place < end, x.reshape(-1)[jnp.minimum(place, K * B - 1)], self.spread(at_end)[:, None])

    def fold(self, i: Array, body: Callable[[Any, Part], Any], carry: Any) -> Any:
        """`carry = body(carry, part)` for each part of episode `i`, with several rows in a part."""
        K, start, stop = len(self.episode), self.first[i], self.stop[i]
        size = min(PART_ROWS, K)

        def step(k: Array, carry: Any) -> Any:
            begin = start + k * size
            slice_begin = jnp.minimum(begin, K - size)
            row = slice_begin + jnp.arange(size)
            return body(carry, Part(slice_begin, (row >= begin) & (row < stop)))

        return jax.lax.fori_loop(0, -(-(stop - start) // size), step, carry)


WHOLE = Rows()
"""Each episode is one row."""


class Part(NamedTuple):
    """Some rows of an episode, and, where it has no more, some of others."""

    begin: Array
    """The first row."""
    own: Array
    """[rows]: whether they are of the episode."""

    def take(self, tree: Any) -> Any:
        """Arrays [K, ...] to [rows, ...]."""
        return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, self.begin, len(self.own)), tree)

    def put(self, x: Array, rows: Array) -> Array:
        """`x` [K, B] with those of the `rows` [rows, B] that are the episode's."""
        rows = jnp.where(self.own[:, None], rows, self.take(x))
        return jax.lax.dynamic_update_slice_in_dim(x, rows, self.begin, axis=0)


def rows_needed(lengths: Any) -> Any:
    """How many packed rows episodes of these lengths take. NumPy."""
    return -(-np.asarray(lengths, int) // ROW)
