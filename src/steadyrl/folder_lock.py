"""One process at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: nothing keeps another process out there.
    fcntl = None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder if need be, and keep other processes out of it; the system lets go when this process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made: {error.strerror}. Choose another --out.") from None
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"{folder}: another process is at work in it. Wait for its end, or choose another --out."
            ) from None
        yield
    finally:
        os.close(place)
