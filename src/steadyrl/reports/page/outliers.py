"""Seeds that stand out from the others of their method."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

MIN_SEEDS = 4
"""With fewer seeds, none stands out: two of three agree by chance."""
DEVIATIONS = 3.0
"""Distance from the median at which a seed stands out, in robust standard deviations."""
LEAST_SPREAD, LEAST_SIZE = 0.005, 0.01
"""A robust standard deviation counts as at least these shares of the spread of all runs of the variant, and of the
median: seeds may agree to the last digit."""
_NORMAL = 1.4826
"""Standard deviations of a normal distribution per median absolute deviation."""


def outliers(values: Mapping[str, float], spread: float) -> dict[str, float]:
    """Run -> distance from the median, for the runs of a method that stand out.

    Args:
        values: Run -> its measure at the end of training.
        spread: Highest less lowest value of all runs of the variant, against which small differences are nothing.
    """
    if len(values) < MIN_SEEDS:
        return {}
    median = float(np.median(list(values.values())))
    deviation = _NORMAL * float(np.median([abs(value - median) for value in values.values()]))
    least = DEVIATIONS * max(deviation, LEAST_SPREAD * spread, LEAST_SIZE * abs(median))
    return {name: value - median for name, value in values.items() if abs(value - median) > least}
