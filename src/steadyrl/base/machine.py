"""The machine: how many cores to use, and a compilation cache that processes share."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from steadyrl.base.compilation_cache import MAX_BYTES, install

_CACHE_DIR = "jax_compilation_cache_dir"
_CACHE_EVERYTHING: dict[str, Any] = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "none",
}

_enabled = False
"""Whether `enable_compilation_cache` has been called."""


def usable_cores() -> int:
    """`NPROC` if it is set, which JAX honours too, else the number of cores this process may run on."""
    requested = os.environ.get("NPROC", "")
    if requested.isdecimal() and int(requested) > 0:
        return int(requested)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compilation_cache_env() -> dict[str, str]:
    """Environment variables for child processes, so that they share what they compile."""
    return {name.upper(): str(value) for name, value in _cache_options().items()}


def enable_compilation_cache() -> None:
    """Use the shared compilation cache in this process, unless it is off (`JAX_ENABLE_COMPILATION_CACHE=0`).

    A folder, or a limit of size, that the user has chosen for JAX's cache is kept. Without a folder that can be made
    there is no cache.
    """
    global _enabled
    if _enabled:
        return
    _enabled = True
    import jax

    if not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return
    chosen = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder.
        options = _cache_options() | ({_CACHE_DIR: chosen} if chosen else {})
        folder = Path(options[_CACHE_DIR])
        if "://" not in str(options[_CACHE_DIR]):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, value in options.items():
            jax.config.update(name, value)  # type: ignore[no-untyped-call]
        limited_by_jax = jax.config.jax_compilation_cache_max_size != -1  # type: ignore[attr-defined]
        if "://" not in str(options[_CACHE_DIR]) and not limited_by_jax:
            install(folder, MAX_BYTES if folder == _own_folder() else None)


def _cache_options() -> dict[str, Any]:
    """A cache directory that the user has chosen is kept."""
    return {_CACHE_DIR: os.environ.get(_CACHE_DIR.upper()) or str(_own_folder()), **_CACHE_EVERYTHING}


def _own_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "steadyrl" / f"compiled-{_cpu_digest()}"


def _cpu_digest() -> str:
    """Identifies the CPU type, whose instructions compiled programs contain: machines may share a home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else [platform.processor()]
    kind = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}) or lines[:1]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
