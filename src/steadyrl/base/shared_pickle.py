"""A value that one process hands to many at the same time, in memory that all of them have.

Through a pipe, one larger than the buffer of the system is not sent before the other end has read it: a process that is
still starting would hold up those after it.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrl.base.shared_arrays import Layout, SharedArrays


class SharedPickle:
    """Memory for a value at a time. It can be an argument of processes that are being spawned."""

    def __init__(self) -> None:
        self._memory = SharedArrays()

    def write(self, value: Any) -> list[Layout]:
        """Replace what it holds, which nobody may be reading; returns what other processes need to read it."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)  # Arrays are not copied into it.
        parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
        return self._memory.write([np.frombuffer(part, np.uint8) for part in parts])

    def read(self, layouts: Sequence[Layout]) -> Any:
        """A copy of the value that the other process has written."""
        pickled, *buffers = self._memory.read(layouts)
        return pickle.loads(pickled.data, buffers=buffers)

    def close(self) -> None:
        """Release the memory, as far as this process is concerned."""
        self._memory.close()
