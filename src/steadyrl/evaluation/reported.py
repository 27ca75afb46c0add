"""The measures in a report: those that every report has, and those of `risk.MEASURES` that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.risk import cvar, gini_deviation, measure_by_name, standard_deviation, variance

Statistic = Callable[[NDArray[np.float64]], Any]
"""A number of a sample of returns, over the last axis."""

REPORTED: dict[str, Statistic] = {
    "mean": lambda R: R.mean(axis=-1),
    "standard_deviation": standard_deviation,
    "variance": variance,
    "gini_deviation": gini_deviation,
    "cvar_05": lambda R: cvar(R, alpha=0.05),
    "cvar_10": lambda R: cvar(R, alpha=0.10),
}
"""The measures of every report that have a confidence interval: the `Estimate` fields of `Risk`."""
_LOWER_IS_BETTER = ("standard_deviation", "variance", "gini_deviation")


class Requested(NamedTuple):
    """A measure that is asked for."""

    statistic: Statistic
    lower_is_better: bool
    of_constant: Callable[[float], float]
    """Its value if all returns are equal to a number."""


def requested(names: str | Iterable[str]) -> dict[str, Requested]:
    """Measures by their names in `risk.MEASURES`, with a number or not: "semivariance", "cvar:0.2".

    Of CVaR more is better: it is reported as the mean of the worst returns, not as minus that.
    """
    texts = names.split(",") if isinstance(names, str) else names
    return {name: _requested(name) for text in texts if (name := text.strip())}


def _requested(name: str) -> Requested:
    measure = measure_by_name(name)
    negated = getattr(measure, "higher_is_better", False)

    def statistic(R: NDArray[np.float64]) -> Any:
        value = np.asarray(measure.value(R))
        return -value if negated else value

    def of_constant(value: float) -> float:
        # Exactly 0: floating-point error in the mean would give a deviation of about 1e-17.
        invariant = measure.properties is not None and measure.properties.location_invariant
        return 0.0 if invariant else float(statistic(np.full(2, value)))

    return Requested(statistic, not negated, of_constant)


def statistics(names: Iterable[str]) -> dict[str, Statistic]:
    """All measures of a report in which `names` were asked for."""
    return {**REPORTED, **{name: one.statistic for name, one in requested(names).items()}}


def stacked(functions: dict[str, Statistic]) -> Callable[..., NDArray[np.float64]]:
    """A function of returns [..., n] to [k, ...]: k measures. SciPy passes `axis`, which is always the last one."""
    return lambda R, axis=-1: np.stack([measure(R) for measure in functions.values()])


def lower_is_better(names: Iterable[str]) -> set[str]:
    """Which measures of a report in which `names` were asked for are better if they are lower."""
    return {*_LOWER_IS_BETTER, *(name for name, one in requested(names).items() if one.lower_is_better)}
