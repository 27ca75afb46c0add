"""Which lambdas: ranges as people write them, and what is sensible for an agent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import AGENTS
from steadyrl.base.names import unknown
from steadyrl.base.shown import shown
from steadyrl.risk import MEASURES, LawMeasure, ParametricMeasure
from steadyrl.runs.sweep import repeated, setting_types

MAX_LAMBDAS = 1000
UNITS_OF_RETURN = "0:2:5"
"""By default, where risk is in the units of the return, as the Gini deviation."""
UNITS_OF_VARIANCE = "0.001:1:4:log"
"""By default for a variance: how large a lambda is depends on the scale of returns, so decades are tried."""
_EXAMPLE = "Write low:high:count, such as 0:2:5, low:high:count:log, or a list such as 0,0.5,1."


def has_risk_aversion(agent: str) -> bool:
    """Whether it has a lambda."""
    return "risk_aversion" in setting_types(AGENTS[agent])


def penalized_measure(agent: str, settings: Mapping[str, Any]) -> LawMeasure:
    """The measure of returns that an agent with a lambda penalizes; those that are not named penalize a variance."""
    if agent != "mean_risk":
        return MEASURES["gini" if agent == "mg" else "variance"]
    name = settings.get("measure", "gini")
    if name not in MEASURES:
        raise ValueError(unknown("measure", name, MEASURES))
    measure = MEASURES[name]
    own = measure.parameter if isinstance(measure, ParametricMeasure) else None
    for parameter in ("alpha", "beta"):
        if parameter != own and settings.get(parameter) is not None:
            raise ValueError(f"{parameter}={settings[parameter]}: {name} has no {parameter}. Leave it out.")
    number = None if own is None else settings.get(own)
    return measure.at(number) if isinstance(measure, ParametricMeasure) and number is not None else measure


def penalty(agent: str, settings: Mapping[str, Any], returns: NDArray[Any]) -> float:
    """What an agent penalizes lambda times: its measure of returns; Tamar the squared excess over its threshold.

    For MVPI, which penalizes the variance of the rewards of single steps, that of returns is a proxy.
    """
    risk = float(penalized_measure(agent, settings).value(returns))
    if agent != "tamar":
        return risk
    tamar: Any = AGENTS[agent].settings_of(settings)
    return max(0.0, risk - float(tamar.threshold)) ** 2


def in_units_of_return(agent: str, settings: Mapping[str, Any]) -> bool:
    """Whether the agent penalizes a risk in the units of the return, rather than their square."""
    properties = penalized_measure(agent, settings).properties
    return properties is None or properties.degree != 2


def default_range(agent: str, settings: Mapping[str, Any]) -> tuple[float, ...]:
    """The lambdas of an agent if none are given."""
    return aversions_of(UNITS_OF_RETURN if in_units_of_return(agent, settings) else UNITS_OF_VARIANCE)


def aversions_of(given: str | float | Iterable[float], name: str = "risk_aversion") -> tuple[float, ...]:
    """From text (see `_EXAMPLE`), a number or several; an error that calls it by `name`."""
    if isinstance(given, str):
        values = _of_text(given, name)
    else:
        numbers = [given] if isinstance(given, int | float | np.number) else list(given)
        values = [_number(number, name) for number in numbers]
    if not values:
        raise ValueError(f"{name}: it is empty. {_EXAMPLE}")
    if len(values) > MAX_LAMBDAS:
        raise ValueError(f"{name}: {len(values):,} values; at most {MAX_LAMBDAS:,} are possible.")
    if twice := repeated(values):
        raise ValueError(f"{name}: {twice[0]:g} is given twice: name each once.")
    return tuple(values)


def _of_text(text: str, name: str) -> list[float]:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) == 1:
        return [_number(part, name) for part in text.split(",") if part.strip()]
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3] not in ("log", "linear")):
        raise ValueError(f"{name} {shown(text, 40, quotes=False)}: that is no range. {_EXAMPLE}")
    low, high = _number(parts[0], name), _number(parts[1], name)
    if not parts[2].isdecimal() or not 1 <= int(parts[2][:9]) <= MAX_LAMBDAS:
        count_text = shown(parts[2], 20, quotes=False)
        raise ValueError(f"{name} {text}: the count {count_text} is no whole number from 1 to {MAX_LAMBDAS:,}.")
    count = int(parts[2])
    if low > high or (low == high and count > 1):
        raise ValueError(f"{name} {text}: the low end {low:g} is not below the high end {high:g}.")
    if count == 1 and low != high:
        raise ValueError(f"{name} {text}: one value cannot span a range. Raise the count, or write {parts[0]}.")
    if parts[3:] == ["log"] and low <= 0:
        raise ValueError(f"{name} {text}: logarithmic steps need a low end above 0.")
    values = np.geomspace(low, high, count) if parts[3:] == ["log"] else np.linspace(low, high, count)
    return [rounded(value) for value in values]


def bracket_of(given: str | Sequence[float], name: str) -> tuple[float, float]:
    """From low:high as text, or two numbers."""
    parts: Sequence[Any] = given.split(":") if isinstance(given, str) else given if isinstance(given, Sequence) else ()
    if len(parts) != 2:
        raise ValueError(f"{name} {shown(given, 40, quotes=False)}: give two ends as low:high, such as 0:2.")
    low, high = (_number(part, name) for part in parts)
    if low >= high:
        raise ValueError(f"{name}: the low end {low:g} is not below the high end {high:g}.")
    return low, high


def rounded(value: float, digits: int = 4) -> float:
    """With so many significant digits: it becomes the name of a folder."""
    return float(f"{value:.{digits}g}")


def _number(given: Any, name: str) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {shown(given, 40, quotes=False)} is not a number. {_EXAMPLE}") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: {value:g}: lambda is a finite number of at least 0.")
    return value
