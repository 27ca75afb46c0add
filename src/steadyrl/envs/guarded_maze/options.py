"""Options of the Guarded Maze in the types that they need, with errors for anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from steadyrl.base.shown import shown


def as_bool(name: str, value: Any) -> bool:
    """True or False, also NumPy's; other values would count as one of them by accident."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={shown(value)}: only True or False is allowed.")
    return bool(value)


def as_number(name: str, value: Any) -> float:
    """A real number as a float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    try:
        if isinstance(value, bool | np.bool_ | str | bytes | complex | np.ndarray):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}={shown(value)}: a number is needed, such as 20.0.") from None


def as_numbers(name: str, values: Any) -> tuple[float, ...]:
    """Several real numbers in order."""
    is_other = isinstance(values, str | bytes | Mapping | Set) or (isinstance(values, np.ndarray) and values.ndim != 1)
    if is_other or not isinstance(values, Iterable):
        raise ValueError(f"{name}={shown(values)}: a list of numbers is needed, such as [-15.0, 13.0].")
    return tuple(as_number(name, value) for value in values)
