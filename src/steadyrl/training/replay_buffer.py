"""A replay buffer: the latest transitions, each a row of numbers, from which batches are sampled."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steadyrl.base.memory import check_memory


class ReplayBatch(NamedTuple):
    """Transitions sampled from a replay buffer: U batches of B. Arrays are NumPy's or JAX's."""

    observations: Any
    """[U, B, inputs]."""
    actions: Any
    """[U, B, outputs]."""
    rewards: Any
    """[U, B]: as the environment paid them."""
    next_observations: Any
    """[U, B, inputs]."""
    terminal: Any
    """[U, B]: 1 where the value of the next observation does not count, else 0."""
    timesteps: Any
    """The number of environment steps so far."""
    next_masks: Any = None
    """[U, B, A] bool: which actions are allowed after the step; None if all are."""


class TransitionLayout(NamedTuple):
    """Where in a row the parts of a transition are.

    Where actions are masked, the mask of the next observation is at the end of the row, which is then wider. Images
    make rows of bytes: both observations, then the four bytes of each other number.
    """

    inputs: int
    """How many numbers an observation is."""
    outputs: int
    """How many numbers an action is."""
    in_bytes: bool = False
    """Whether observations are bytes."""

    @property
    def width(self) -> int:
        """Of a row without a mask."""
        return 2 * self.inputs + (self.outputs + 2) * (4 if self.in_bytes else 1)

    @property
    def dtype(self) -> Any:
        """Of a row."""
        return np.uint8 if self.in_bytes else np.float32

    def row(
        self,
        observation: Any,
        action: Any,
        reward: float,
        next_observation: Any,
        terminal: bool,
        next_mask: Any = None,
    ) -> Any:
        """A transition as a row."""
        if self.in_bytes:
            numbers = np.concatenate([np.ravel(action), [reward, terminal]], dtype=np.float32).view(np.uint8)
            parts = [observation, next_observation, numbers]
        else:
            parts = [observation, np.ravel(action), [reward], next_observation, [terminal]]
        return np.concatenate(parts if next_mask is None else [*parts, next_mask], dtype=self.dtype, casting="unsafe")

    def parts(self, rows: Any, timesteps: Any) -> ReplayBatch:
        """The parts of rows [U, B, width], drawn after so many steps; in NumPy or in JAX."""
        s, a = self.inputs, self.inputs + self.outputs
        masks = rows[..., self.width :] > 0 if rows.shape[-1] > self.width else None
        rows = rows[..., : self.width]
        if self.in_bytes:
            numbers = _floats(rows[..., 2 * s :])
            given = rows[..., :s], numbers[..., :-2], numbers[..., -2], rows[..., s : 2 * s], numbers[..., -1]
        else:
            given = rows[..., :s], rows[..., s:a], rows[..., a], rows[..., a + 1 : -1], rows[..., -1]
        return ReplayBatch(*given, timesteps, masks)


def _floats(rows: Any) -> Any:
    """[..., 4 m] bytes to [..., m] numbers of 32 bits."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows).view(np.float32)
    return jax.lax.bitcast_convert_type(rows.reshape(*rows.shape[:-1], -1, 4), jnp.float32)


class ReplayBuffer:
    """The last `capacity` rows that were added.

    A policy that is only used needs no room for them, so there is none before `allocate`.
    """

    def __init__(self, width: int, capacity: int, dtype: Any = np.float32) -> None:
        self._width, self._capacity, self._dtype = width, capacity, np.dtype(dtype)
        self._rows = np.empty((0, width), dtype)
        self.added = 0
        self._overwritten: list[Any] = []

    def allocate(self) -> None:
        """Make room for all rows, if there is none yet; the system provides the memory as it fills."""
        if len(self._rows):
            return
        check_memory("buffer_size", self._capacity, float(self.nbytes))
        try:
            self._rows = np.empty((self._capacity, self._width), self._dtype)
        except MemoryError:
            needed = 1e-9 * self.nbytes
            raise ValueError(
                f"buffer_size={self._capacity}: the system refuses the {needed:,.1f} GB of such a replay buffer. "
                "Lower buffer_size."
            ) from None

    def __len__(self) -> int:
        return min(self.added, self._capacity)

    @property
    def nbytes(self) -> int:
        """Its size when it is full."""
        return int(self._dtype.itemsize) * self._width * self._capacity

    @property
    def dtype(self) -> Any:
        """Of the rows."""
        return self._dtype

    @property
    def width(self) -> int:
        """Of a row."""
        return self._width

    def widen(self, width: int) -> None:
        """Make room for rows of that width, before the first one is added."""
        assert not self.added
        allocated, self._width = len(self._rows) > 0, width
        self._rows = np.empty((0, width), self._dtype)
        if allocated:
            self.allocate()

    @property
    def rows(self) -> NDArray[Any]:
        """All rows: row k was added as number k, k + capacity, ..."""
        return self._rows[: len(self)]

    def add(self, row: Any) -> None:
        """Add a row, in place of the oldest if the buffer is full."""
        self.allocate()
        place = self.added % self._capacity
        if self.added >= self._capacity:
            self._overwritten.append(self._rows[place].copy())
        self._rows[place] = row
        self.added += 1

    def commit(self) -> int:
        """Make everything so far permanent; returns how many rows were added."""
        self._overwritten.clear()
        return self.added

    def rollback(self, added: int) -> None:
        """Return to the state in which `commit` returned `added`."""
        while self.added > added:
            self.added -= 1
            if self._overwritten:
                self._rows[self.added % self._capacity] = self._overwritten.pop()

    def shape_after(self, added: Any) -> tuple[int, int]:
        """The shape of `rows` after so many were added."""
        return min(int(np.max(added)), self._capacity), self._width

    def restore(self, rows: Any, added: int) -> None:
        """Become the buffer that had these `rows` after so many were `added`."""
        self.allocate()
        self._rows[: len(rows)] = rows
        self.added = added

    def latest(self, count: int) -> NDArray[Any]:
        """[at most count, width]: the rows that were added last, the oldest of them first."""
        places = np.arange(self.added - min(count, len(self)), self.added) % self._capacity
        return self._rows[places]

    def sample(self, generator: np.random.Generator, updates: int, batch: int) -> NDArray[Any]:
        """[updates, batch, width]: sampled uniformly and independently from all rows."""
        check_memory(
            "gradient_steps", updates, updates * batch * (8.0 + float(self._dtype.itemsize) * self._rows.shape[1])
        )
        drawn = generator.integers(len(self), size=(updates, batch))
        return self._rows.take(drawn, axis=0)
