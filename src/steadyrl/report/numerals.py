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
    return f"{100 * value:.{1 if _near_an_end(value) else 0}f} %"


def is_rate(measure: str) -> bool:
    """Whether a measure is told in per cent."""
    return measure.endswith("_rate")


def with_error(mean: float, error: float | None, measure: str, largest: float) -> str:
    """As in `8.69 ± 0.04` or `97 ± 1 %`, with a digit more where that shows the error.

    Beside a `largest` of 7.57 nobody needs to know 0.00415 to five decimals: four will do. `error` is None where there
    is only one seed.
    """
    if error is None or not math.isfinite(mean + error):
        return share(mean) if is_rate(measure) else number(mean)
    if is_rate(measure):
        fine = error < 0.005 and (error >= 0.0005 or _near_an_end(mean))
        return f"{100 * mean:.{int(fine)}f} ± {100 * error:.{int(fine)}f} %"
    decimals = _decimals(mean)
    shows = 0.05 <= error * 10.0**decimals < 0.5
    decimals = min(decimals + shows, _decimals(largest) + 2)
    return f"{mean:,.{decimals}f} ± {error:,.{decimals}f}"


def interval(estimate: Estimate) -> str:
    """As in `[8.61, 8.78]`."""
    return f"[{number(estimate.low)}, {number(estimate.high)}]"


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
    """So many that three digits are significant, after rounding: none for -99.99."""
    magnitude = math.floor(math.log10(abs(float(f"{value:.3g}")))) if value else 0
    return max(0, 2 - magnitude)


def _near_an_end(rate: float) -> bool:
    return 0.0005 < rate < 0.01 or 0.99 < rate < 0.9995
