"""Arrays that one process hands to another in memory that both have, without a copy through a pipe.

The memory is a file without a name, so nothing remains of it when both processes have ended, however they ended.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from multiprocessing import reduction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 64


class Layout(NamedTuple):
    """Where an array is in the memory."""

    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class SharedArrays:
    """Memory for some arrays at a time. It can be an argument of a process that is being spawned."""

    def __init__(self) -> None:
        self._file = _nameless_file()

    def __getstate__(self) -> Any:
        return reduction.DupFd(self._file)

    def __setstate__(self, duplicate: Any) -> None:
        self._file = duplicate.detach()

    def write(self, arrays: Sequence[NDArray[Any]]) -> list[Layout]:
        """Replace what it holds; returns what the other process needs to read it."""
        layouts, end = [], 0
        for array in arrays:
            layouts.append(Layout(array.dtype.str, array.shape, end))
            end = _aligned(end + array.nbytes)
        if os.fstat(self._file).st_size < end:
            os.ftruncate(self._file, end)
        with mmap.mmap(self._file, end) as memory:
            for array, layout in zip(arrays, layouts, strict=True):
                _view(memory, layout)[...] = array
        return layouts

    def read(self, layouts: Sequence[Layout]) -> list[NDArray[Any]]:
        """Copies of the arrays that the other process has written."""
        end = max(_aligned(layout.start + layout.nbytes) for layout in layouts)
        with mmap.mmap(self._file, end, access=mmap.ACCESS_READ) as memory:
            return [_view(memory, layout).copy() for layout in layouts]

    def close(self) -> None:
        """Release the memory, as far as this process is concerned."""
        os.close(self._file)


def _view(memory: Any, layout: Layout) -> NDArray[Any]:
    count = layout.nbytes // np.dtype(layout.dtype).itemsize
    return np.frombuffer(memory, layout.dtype, count, layout.start).reshape(layout.shape)


def _aligned(size: int) -> int:
    """At least one unit: nothing cannot be mapped."""
    return max(1, -(-size // _ALIGNMENT)) * _ALIGNMENT


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):  # In memory, and not within the limits of /dev/shm, which containers keep small.
        return os.memfd_create("steadyrl")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
