"""Formatting of numbers and settings for the report."""

from __future__ import annotations

import html
import math
import re
from typing import Any

from steadyrl.evaluation.risk_report import Estimate

MAX_SETTING_LENGTH = 40
"""Longer settings, such as the layout of a maze, are truncated to this number of characters."""


_OPTION = re.compile(r"(?<!\S)(--[\w-]+)")


def number(value: float) -> str:
    """Three significant digits, and all digits before the decimal point: 0.0123, 8.69, -100, 12,345."""
    if not math.isfinite(value):
        return "n/a"
    return f"{value:,.{_decimals(value)}f}" if value else "0"


def percent(value: float) -> str:
    """A rate in percent, with a decimal close to 0 and 1, so that 0.997 is not shown as 100 %."""
    if not math.isfinite(value):
        return "n/a"
    return f"{100 * value:.{1 if _near_0_or_1(value) else 0}f} %"


def is_rate(measure: str) -> bool:
    """Whether a measure is shown in percent."""
    return measure.endswith("_rate")


def with_error(mean: float, error: float | None, measure: str, largest: float) -> str:
    """For example `8.69 ± 0.04` or `97 ± 1 %`, with one more digit if the error would otherwise round to 0.

    `largest` is the largest absolute mean in the same column; it limits the decimals of small values. `error` is None
    for a single seed.
    """
    if error is None or not math.isfinite(mean + error):
        return percent(mean) if is_rate(measure) else number(mean)
    if is_rate(measure):
        fine = error < 0.005 and (error >= 0.0005 or _near_0_or_1(mean))
        return f"{100 * mean:.{int(fine)}f} ± {100 * error:.{int(fine)}f} %"
    decimals = _decimals(mean)
    extra = 0.05 <= error * 10.0**decimals < 0.5
    decimals = min(decimals + extra, _decimals(largest) + 2)
    return f"{mean:,.{decimals}f} ± {error:,.{decimals}f}"


def interval(estimate: Estimate) -> str:
    """For example `[8.61, 8.78]`."""
    return f"[{number(estimate.low)}, {number(estimate.high)}]"


def count(n: int, noun: str) -> str:
    """For example `1 run` or `1,200 runs`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def span(values: list[int]) -> str:
    """For example `200,000`, or `5,000 to 200,000` if the values differ."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def setting(value: Any) -> str:
    """The value of a setting, for example 0.0001, true or unbiased; long text is truncated."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(setting(item) for item in value)
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_SETTING_LENGTH else f"{text[: MAX_SETTING_LENGTH - 3]}..."


def command(text: str) -> str:
    """A command as HTML that has no line break within the name of an option."""
    marked = _OPTION.sub(r"<span>\1</span>", html.escape(text))
    return f"<code>{marked}</code>"


def _decimals(value: float) -> int:
    """The decimals that give three significant digits after rounding; 0 for -99.99."""
    magnitude = math.floor(math.log10(abs(float(f"{value:.3g}")))) if value else 0
    return max(0, 2 - magnitude)


def _near_0_or_1(rate: float) -> bool:
    return 0.0005 < rate < 0.01 or 0.99 < rate < 0.9995
