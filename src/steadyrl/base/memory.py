"""The memory that settings ask for, compared with what there is before anything is allocated."""

from __future__ import annotations

import math
import os
from typing import Any

from steadyrl.base.shown import shown


def check_memory(setting: str, value: Any, needed: float) -> None:
    """An error if what a setting asks for `needed` bytes of memory, and the machine has fewer."""
    present = _memory()
    if needed > present:
        raise ValueError(
            f"{setting}={shown(value)}: this needs {needed / 1e9:,.1f} GB of memory, and this machine has "
            f"{present / 1e9:,.1f} GB. Lower {setting}."
        )


def _memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf
