"""JAX's persistent compilation cache, with whole files, a limit of size, and no entry that stays unreadable.

JAX writes entries in place and never replaces one. An entry whose process was killed while writing it is therefore
compiled anew by every process from then on, with a warning; and so it is by a process that reads while another one is
writing. JAX's own limit of size (`jax_compilation_cache_max_size`) needs a lock and reads a file for every entry
whenever it adds one; after a kill there, nothing can be added any more. The names and the content of files here are
JAX's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_BYTES = 500_000_000
"""Of all entries; the size of a training's programs is 0.1 to 2 MB."""
_KEPT = 0.8
"""Of `MAX_BYTES`, when entries have to be removed."""
_CHECKED_EVERY = 100
"""Entries added by a process between two checks of the size."""
_ABANDONED_SECONDS = 3600
"""Age of a file that nobody is writing any more."""
_ENTRY, _PARTIAL = "-cache", ".partial"


class FileCache:
    """Entries as files of a folder, for any number of processes at a time."""

    def __init__(self, folder: Path, is_whole: Callable[[bytes], bool], max_bytes: int | None = MAX_BYTES) -> None:
        """`is_whole(value)` says whether an entry can be used; `max_bytes` is None for no limit."""
        self._path, self._is_whole, self._max_bytes, self._added = folder, is_whole, max_bytes, 0

    def get(self, key: str) -> bytes | None:
        """The entry; None if there is none, or it is not whole, in which case it is removed."""
        file = self._path / f"{key}{_ENTRY}"
        with suppress(OSError):
            value = file.read_bytes()
            if self._is_whole(value):
                os.utime(file)  # File systems rarely record by themselves when a file was read.
                return value
            file.unlink()
        return None

    def put(self, key: str, value: bytes) -> None:
        """Add an entry; nothing happens if it cannot be written, for example on a full disk."""
        file = self._path / f"{key}{_ENTRY}"
        partial = self._path / f".{file.name}.{os.getpid()}{_PARTIAL}"
        with suppress(OSError):
            if self._max_bytes is not None and self._added % _CHECKED_EVERY == 0:
                prune(self._path, self._max_bytes)
            self._added += 1
            try:
                partial.write_bytes(value)
                partial.replace(file)
            finally:
                partial.unlink(missing_ok=True)


def prune(folder: Path, max_bytes: int) -> None:
    """Remove abandoned files, and if the entries have more than `max_bytes` those that were not used for longest."""
    entries, now = [], time.time()
    for item in os.scandir(folder):
        with suppress(OSError):  # Another process has removed it.
            if item.name.endswith(_ENTRY):
                stat = item.stat()
                entries.append((max(stat.st_atime, stat.st_mtime), stat.st_size, item.path))
            elif item.name.endswith(_PARTIAL) and now - item.stat().st_mtime > _ABANDONED_SECONDS:
                os.unlink(item.path)
    total = sum(size for _, size, _ in entries)
    if total <= max_bytes:
        return
    for _, size, path in sorted(entries):
        with suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= _KEPT * max_bytes:
            return


def install(folder: Path, max_bytes: int | None) -> None:
    """Let JAX use a `FileCache` in a folder. If this version of JAX has no place for it, JAX's own stays."""
    try:
        from jax._src import compilation_cache as jax_cache
        from jax._src.compilation_cache_interface import CacheInterface

        decompress = jax_cache.decompress_executable
        if not hasattr(jax_cache, "_cache"):
            return
    except (ImportError, AttributeError):
        return

    def is_whole(value: bytes) -> bool:
        try:
            decompress(value)
        except Exception:
            return False
        return True

    adapted: Any = type("SteadyFileCache", (FileCache, CacheInterface), {})
    state: Any = jax_cache
    state._cache, state._cache_initialized = adapted(folder, is_whole, max_bytes), True
