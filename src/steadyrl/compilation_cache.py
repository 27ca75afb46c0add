"""Compiled programs kept on disk, so that a process need not compile what another one has."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

_FOLDER = "jax_compilation_cache_dir"
_ALL_PROGRAMS: dict[str, Any] = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "none",
}


def shared_compilation() -> dict[str, str]:
    """For the environment of processes that share what they compile."""
    return {name.upper(): str(value) for name, value in _options().items()}


def share_compilation() -> None:
    """The same for this process, in which JAX may have been imported already."""
    import jax

    for name, value in _options().items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


def _options() -> dict[str, Any]:
    """A folder that the user chose is kept."""
    folder = os.environ.get(_FOLDER.upper()) or str(_caches() / "steadyrl" / f"compiled-{_processor()}")
    return {_FOLDER: folder, **_ALL_PROGRAMS}


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _processor() -> str:
    """The kind of processor, whose instructions are in compiled programs: machines may share a home folder."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else [platform.processor()]
    kind = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}) or lines[:1]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
