"""How many cores there are to use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """`NPROC` if that is set, as JAX takes it, and else the cores that the system lets this process have."""
    wanted = os.environ.get("NPROC", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
