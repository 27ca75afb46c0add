"""The machine: how many cores to use, and a compilation cache that processes share."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

_CACHE_DIR = "jax_compilation_cache_dir"
_CACHE_EVERYTHING: dict[str, Any] = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "none",
}


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
    """Use the shared compilation cache in this process, whether or not JAX has been imported."""
    import jax

    for name, value in _cache_options().items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


def _cache_options() -> dict[str, Any]:
    """A cache directory that the user has chosen is kept."""
    folder = os.environ.get(_CACHE_DIR.upper()) or str(_user_cache() / "steadyrl" / f"compiled-{_cpu_digest()}")
    return {_CACHE_DIR: folder, **_CACHE_EVERYTHING}


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _cpu_digest() -> str:
    """Identifies the CPU type, whose instructions compiled programs contain: machines may share a home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else [platform.processor()]
    kind = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}) or lines[:1]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
