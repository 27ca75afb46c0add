"""Numbers as people like to read them."""

from __future__ import annotations

import math
from typing import Any

from steadyrl.risk_report import Estimate

LONGEST = 40
"""Characters of a setting's text, such as a maze's drawing, that are shown."""


def number(value: float) -> str:
    """Three significant digits, and all those before the point: 0.0123, 8.69, -100, 12,345."""
    if not math.isfinite(value):
        return "n/a"
    return f"{value:,.{_decimals(value)}f}" if value else "0"


def share(value: float) -> str:
    """A rate in per cent, which is 0 % or 100 % only if it is exactly that, or within a thousandth."""
    if not math.isfinite(value):
        return "n/a"
    near_an_end = 0.0005 <= value < 0.01 or 0.99 < value <= 0.9995
    return f"{100 * value:.{1 if near_an_end else 0}f} %"


def is_rate(measure: str) -> bool:
    """Whether a measure is told in per cent."""
    return measure.endswith("_rate")


def with_error(mean: float, error: float | None, measure: str) -> str:
    """As in `8.69 ± 0.04` or `97 ± 1 %`; `error` is None where there is only one seed."""
    if not math.isfinite(mean):
        return "n/a"
    if is_rate(measure):
        return share(mean) if error is None else f"{100 * mean:.0f} ± {100 * error:.0f} %"
    return number(mean) if error is None else f"{number(mean)} ± {error:,.{_decimals(mean)}f}"


def with_interval(estimate: Estimate) -> str:
    """As in `8.69 [8.61, 8.78]`."""
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def count(number_of: int, thing: str) -> str:
    """As in `1 run` or `1,200 runs`."""
    return f"{number_of:,} {thing}{'' if number_of == 1 else 's'}"


def span(values: list[int]) -> str:
    """As in `200,000`, or `5,000 to 200,000` where they differ."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def setting(value: Any) -> str:
    """A setting's value: 0.0001, true, unbiased; long texts are cut."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(setting(item) for item in value)
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _decimals(value: float) -> int:
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return max(0, 2 - magnitude)
