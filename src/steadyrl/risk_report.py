"""The risk of a sample of returns: each measure with its bootstrap confidence interval, and the report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadyrl.histogram import draw_histogram, text_histogram
from steadyrl.risk import cvar, gini_deviation, standard_deviation, variance
from steadyrl.risk.sample import as_returns

MEASURES: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "mean": lambda R: R.mean(axis=-1),
    "standard_deviation": standard_deviation,
    "variance": variance,
    "gini_deviation": gini_deviation,
    "cvar_05": lambda R: cvar(R, alpha=0.05),
    "cvar_10": lambda R: cvar(R, alpha=0.10),
}
"""What gets an interval: the fields of `Risk` that are estimates, each a function over the last axis."""

CONFIDENCE = 0.95
RESAMPLES = 2000
MAX_DRAWS = 20_000_000
"""Returns drawn over all resamples of one sample: above n = 10,000 this bounds the time."""
BATCH_DRAWS = 1_000_000
"""Returns drawn at a time: this bounds the memory."""
BCA_MAX_RETURNS = 1000
"""BCa evaluates the measures n more times on n - 1 returns; what it corrects shrinks as 1/n."""
BOOTSTRAP_STREAM = 0
"""Keeps the resamples' random numbers apart from the others drawn from the same seed."""


class Estimate(NamedTuple):
    """A value estimated from a sample, and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As in `9.85 [9.61, 10.1]`."""
        return f"{number_text(self.value)} [{number_text(self.low)}, {number_text(self.high)}]"


@dataclass(frozen=True)
class Risk:
    """How high and how steady a sample of returns is."""

    mean: Estimate
    standard_deviation: Estimate
    """The square root of the variance, in the unit of the return."""
    variance: Estimate
    """Divided by n - 1."""
    gini_deviation: Estimate
    """Half the expected distance of two episodes' returns, in the unit of the return."""
    cvar_05: Estimate
    """The mean of the worst 5 % of the returns."""
    cvar_10: Estimate
    """The mean of the worst 10 % of the returns."""
    minimum: float
    """The worst return seen. Extremes carry no interval: resampling cannot go beyond the sample."""
    maximum: float
    """The best return seen."""


@dataclass(frozen=True)
class RiskReport(Risk):
    """The risk of a policy: of its undiscounted returns, and under `discounted` of its discounted ones."""

    discounted: Risk
    """The same measures of sum_t gamma^t r_t."""
    gamma: float
    facts: dict[str, float]
    """What the environment itself says, as means over the episodes, such as `goal_rate`."""
    seed: int
    returns: NDArray[np.float64] = field(repr=False, compare=False)
    """The undiscounted return of each episode; read-only."""
    discounted_returns: NDArray[np.float64] = field(repr=False, compare=False)
    """The discounted return of each episode; read-only."""

    @classmethod
    def from_returns(
        cls,
        returns: ArrayLike,
        discounted_returns: ArrayLike,
        gamma: float,
        facts: Mapping[str, Any],
        seed: int,
    ) -> RiskReport:
        """The report of episodes already played.

        Args:
            returns: The undiscounted return of each episode, [n].
            discounted_returns: The discounted return of each episode, [n], in the same order.
            gamma: The discount of `discounted_returns`.
            facts: name -> one number for each episode, [n]; the report holds their means.
            seed: Of the bootstrap's resamples, and of the report: the same seed gives the same intervals.
        """
        R, R_gamma = _as_sample(returns), _as_sample(discounted_returns)
        if len(R) != len(R_gamma):
            raise ValueError(
                f"{len(R)} returns and {len(R_gamma)} discounted returns: each episode has one of both. "
                "Pass them for the same episodes."
            )
        undiscounted = measure_risk(R, seed)
        return cls(
            **vars(undiscounted),
            discounted=undiscounted if np.array_equal(R, R_gamma) else measure_risk(R_gamma, seed),
            gamma=float(gamma),
            facts={name: float(np.mean(values)) for name, values in facts.items()},
            seed=int(seed),
            returns=R,
            discounted_returns=R_gamma,
        )

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return len(self.returns)

    def to_dict(self) -> dict[str, Any]:
        """The report under its attributes' names, for `json.dumps`; None where a number is not finite."""
        return {
            "episodes": self.episodes,
            "seed": self.seed,
            "gamma": self.gamma,
            "confidence": CONFIDENCE,
            **risk_dict(self),
            "discounted": risk_dict(self.discounted),
            "facts": {name: json_number(value) for name, value in self.facts.items()},
            "returns": self.returns.tolist(),
            "discounted_returns": self.discounted_returns.tolist(),
        }

    def histogram(self, path: str | Path) -> Path:
        """Write a picture of the returns to `path`, such as returns.png, with mean, Gini deviation and CVaR marked."""
        return draw_histogram(self, path)

    def __str__(self) -> str:
        """A table: a line for each measure, then the environment's facts and a histogram of the returns."""
        columns = {"undiscounted": _cells(self)}
        if self.gamma < 1:
            columns[f"discounted by {self.gamma:g}"] = _cells(self.discounted)
        table = [["measure", *columns]]
        table += [[measure.name, *(cells[measure.name] for cells in columns.values())] for measure in fields(Risk)]
        title = f"{self.episodes} episodes, seed {self.seed}; [low, high] at {CONFIDENCE:.0%} confidence"
        blocks = [title, aligned(table)]
        if self.facts:
            blocks.append(aligned([[name, fact_text(name, value)] for name, value in self.facts.items()]))
        blocks.append(f"episodes by undiscounted return\n{text_histogram(self.returns)}")
        return "\n\n".join(blocks)


def measure_risk(returns: ArrayLike, seed: int) -> Risk:
    """Every measure of a sample of at least two returns, [n], with its bootstrap interval.

    Intervals are BCa (bias-corrected, accelerated) for n from 3 to 1000, and percentile intervals otherwise,
    from 2000 resamples up to n = 10,000, beyond that from 20,000,000 / n, but never fewer than 200. A measure
    that BCa cannot handle, such as one that is the same in every resample, gets its percentile interval. A
    constant sample's interval is its value.

    Few returns say little of a tail, and no bootstrap can mend that. With 100 exponential returns, intervals
    hold the truth 95 times in 100 for the mean, 93 for the Gini deviation and `cvar_10`, but 88 for the variance
    and 87 for `cvar_05`. Play more episodes where these decide.
    """
    R = _as_sample(returns)
    worst, best = float(R.min()), float(R.max())
    if worst == best:
        # The bootstrap has nothing to resample, and rounding in the mean would make a spread of 1e-17.
        everywhere, none = Estimate(worst, worst, worst), Estimate(0.0, 0.0, 0.0)
        return Risk(everywhere, none, none, none, everywhere, everywhere, minimum=worst, maximum=best)
    # Returns near the largest float have an infinite variance: that is an answer, not a reason to warn.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        estimates = np.stack([measures(R), *bootstrap_intervals((R,), measures, seed)], axis=-1).tolist()
    named: dict[str, Any] = {name: Estimate(*estimate) for name, estimate in zip(MEASURES, estimates, strict=True)}
    return Risk(**named, minimum=worst, maximum=best)


def _as_sample(returns: ArrayLike) -> NDArray[np.float64]:
    """A read-only copy in float64, whatever array library the returns come from."""
    R = np.array(returns, dtype=np.float64)
    if R.ndim != 1:
        raise ValueError(
            f"returns of shape {R.shape}: a report is of one sample. Pass one return for each episode, [n]."
        )
    as_returns(R)  # At least two, and finite.
    R.setflags(write=False)
    return R


def measures(R: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """All of `MEASURES`, stacked: [..., n] to [6, ...]. SciPy passes `axis`, always the last one."""
    return np.stack([measure(R) for measure in MEASURES.values()])


def bootstrap_intervals(
    samples: tuple[NDArray[np.float64], ...], statistic: Callable[..., NDArray[np.float64]], seed: int
) -> NDArray[np.float64]:
    """The lower and upper ends of the intervals of k statistics, [2, k], of one sample [n] or of n pairs.

    `statistic(*samples, axis)` maps [..., n] to [k, ...]. Two samples are resampled together: a pair stays a pair.
    """
    # Imported here: it takes half a second, and whoever only trains need not wait for it.
    from scipy.stats import bootstrap

    n = len(samples[0])
    with warnings.catch_warnings():
        # BCa warns of measures it cannot handle; they are mended below.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = bootstrap(
            samples,
            statistic,
            vectorized=True,
            paired=len(samples) > 1,
            confidence_level=CONFIDENCE,
            n_resamples=int(np.clip(MAX_DRAWS // n, 200, RESAMPLES)),
            batch=max(1, BATCH_DRAWS // n),
            # BCa leaves out one return in turn, and of two that leaves one, which has no spread.
            method="BCa" if 3 <= n <= BCA_MAX_RETURNS else "percentile",
            rng=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(BOOTSTRAP_STREAM,))),
        )
    tail = (1 - CONFIDENCE) / 2
    percentile = np.quantile(result.bootstrap_distribution, [tail, 1 - tail], axis=-1)
    interval = np.stack(result.confidence_interval)
    return np.where(np.isnan(interval).any(axis=0), percentile, interval)


def risk_dict(risk: Risk) -> dict[str, Any]:
    """Every measure under its name, for JSON."""
    estimates = {name: getattr(risk, name)._asdict() for name in MEASURES}
    return {
        **{name: {end: json_number(x) for end, x in ends.items()} for name, ends in estimates.items()},
        "minimum": risk.minimum,
        "maximum": risk.maximum,
    }


def json_number(value: float) -> float | None:
    """None for what JSON has no number for."""
    return value if math.isfinite(value) else None


def _cells(risk: Risk) -> dict[str, str]:
    """The table's column for one sample, by measure."""
    estimates = {name: str(getattr(risk, name)) for name in MEASURES}
    return {**estimates, "minimum": number_text(risk.minimum), "maximum": number_text(risk.maximum)}


def fact_text(name: str, value: float) -> str:
    """A rate in percent, anything else as a number."""
    return f"{100 * value:.1f} %" if name.endswith("_rate") else number_text(value)


def number_text(value: float) -> str:
    """Four significant digits, and whole numbers below a million without an exponent."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value + 0.0:.4g}"  # + 0.0: no "-0".


def aligned(rows: list[list[str]]) -> str:
    """Rows as lines, with columns padded to their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
