"""Compiled programs kept on disk, so that a process need not compile what another one has."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def shared_compilation() -> dict[str, str]:
    """For the environment of processes that share what they compile; a folder that the user chose is kept."""
    folder = os.environ.get(_VARIABLE) or str(_caches() / "steadyrl" / f"compiled-{_processor()}")
    return {
        _VARIABLE: folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
    }


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _processor() -> str:
    """The kind of processor, whose instructions are in compiled programs: machines may share a home folder."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else [platform.processor()]
    kind = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}) or lines[:1]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
