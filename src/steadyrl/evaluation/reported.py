"""The measures in a report: those that every report has, those of `risk.MEASURES` that are asked for, and one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.shown import shown
from steadyrl.risk import cvar, gini_deviation, measure_by_name, standard_deviation, variance

Statistic = Callable[[NDArray[np.float64]], Any]
"""A number of a sample of returns, over the last axis."""
Metric = Callable[[NDArray[np.float64]], float]
"""A measure of one's own: a number of the returns [n] of some episodes."""

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
    of_constant: Callable[[NDArray[np.float64]], float]
    """Its value if all returns are equal."""


def requested(
    names: str | Iterable[str] | Mapping[str, Requested], metrics: Mapping[str, Metric] | None = None
) -> dict[str, Requested]:
    """Measures by their names in `risk.MEASURES`, with a number or not: "semivariance", "cvar:0.2"; and one's own.

    Of CVaR more is better: it is reported as the mean of the worst returns, not as minus that. What this function has
    returned may be passed to it again.
    """
    if isinstance(names, Mapping):
        return dict(names)
    texts = names.split(",") if isinstance(names, str) else names
    known = {name: _requested(name) for text in texts if (name := text.strip())}
    return known | {name: _own(name, function) for name, function in _checked(metrics or {}).items()}


def _requested(name: str) -> Requested:
    measure = measure_by_name(name)
    negated = getattr(measure, "higher_is_better", False)

    def statistic(R: NDArray[np.float64]) -> Any:
        value = np.asarray(measure.value(R))
        return -value if negated else value

    def of_constant(R: NDArray[np.float64]) -> float:
        # Exactly 0: floating-point error in the mean would give a deviation of about 1e-17.
        invariant = measure.properties is not None and measure.properties.location_invariant
        return 0.0 if invariant else float(statistic(R[:2]))

    return Requested(statistic, of_constant)


def _checked(metrics: Any) -> Mapping[str, Metric]:
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics={shown(metrics)}: pass a dict from a name to a function of the returns.")
    for name, function in metrics.items():
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"metrics: {shown(name)} is not a name. Use a text such as 'loss_rate'.")
        if not callable(function):
            raise TypeError(f"metrics[{name!r}] is {shown(function, 40)}: pass a function of the returns.")
        if higher_is_better(name) is not None or name in ("minimum", "maximum"):
            raise ValueError(f"metrics: there is a measure {name!r} already. Choose another name.")
    return metrics


def _own(name: str, function: Metric) -> Requested:
    def value(R: NDArray[np.float64]) -> float:
        result = np.asarray(function(R.copy()))  # A function may sort what it gets.
        if result.size != 1 or result.dtype.kind not in "biuf":
            raise ValueError(f"metrics[{name!r}] returned {shown(result, 40)} for {R.size} returns: return a number.")
        return float(result.reshape(()))

    def of_sample(R: NDArray[np.float64]) -> float:
        result = value(R)
        if not np.isfinite(result):
            raise ValueError(f"metrics[{name!r}] returned {result} for the returns of all episodes: return a number.")
        return result

    def statistic(R: NDArray[np.float64]) -> Any:
        return np.asarray(of_sample(R)) if R.ndim == 1 else np.apply_along_axis(value, -1, R)

    return Requested(statistic, of_sample)


def statistics(measures: Iterable[str] | Mapping[str, Requested]) -> dict[str, Statistic]:
    """All measures of a report in which `measures` were asked for."""
    return {**REPORTED, **{name: one.statistic for name, one in requested(measures).items()}}


def stacked(functions: dict[str, Statistic]) -> Callable[..., NDArray[np.float64]]:
    """A function of returns [..., n] to [k, ...]: k measures. SciPy passes `axis`, which is always the last one."""
    return lambda R, axis=-1: np.stack([measure(R) for measure in functions.values()])


def higher_is_better(name: str) -> bool | None:
    """Whether more of a measure is better; None for a measure of one's own, of which that is not known."""
    if name in REPORTED:
        return name not in _LOWER_IS_BETTER
    try:
        return bool(getattr(measure_by_name(name), "higher_is_better", False))
    except ValueError:
        return None
