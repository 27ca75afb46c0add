"""Risk of a sample of returns: every measure with a bootstrap confidence interval, and the report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadyrl.evaluation.histogram import draw_histogram, text_histogram
from steadyrl.evaluation.reported import REPORTED, Metric, requested, stacked, statistics
from steadyrl.risk.sample import as_returns

CONFIDENCE = 0.95
RESAMPLES = 2000
MAX_DRAWS = 20_000_000
"""Maximum number of returns drawn over all resamples of a sample; limits the time for n > 10,000."""
BATCH_DRAWS = 1_000_000
"""Number of returns drawn at a time; limits the memory."""
BCA_MAX_RETURNS = 1000
"""Largest sample for BCa, which evaluates the measures on n more samples of n - 1; its correction shrinks as 1/n."""
BOOTSTRAP_STREAM = 0
"""Spawn key that separates the bootstrap's random numbers from other streams of the same seed."""


class Estimate(NamedTuple):
    """An estimate and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """For example `9.85 [9.61, 10.1]`."""
        return f"{number_text(self.value)} [{number_text(self.low)}, {number_text(self.high)}]"


@dataclass(frozen=True)
class Risk:
    """Mean, dispersion and tail of a sample of returns."""

    mean: Estimate
    standard_deviation: Estimate
    """The square root of the variance, in the units of the return."""
    variance: Estimate
    """The sample variance, divided by n - 1."""
    gini_deviation: Estimate
    """Half the expected distance between the returns of two episodes, in the units of the return."""
    cvar_05: Estimate
    """The mean of the worst 5 % of the returns."""
    cvar_10: Estimate
    """The mean of the worst 10 % of the returns."""
    minimum: float
    """The lowest return. It has no interval, because resampling cannot go beyond the sample."""
    maximum: float
    """The highest return."""
    measures: dict[str, Estimate] = field(default_factory=dict, kw_only=True)
    """The measures that were asked for, by name."""

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All measures with an interval, by name."""
        return {**{name: getattr(self, name) for name in REPORTED}, **self.measures}


@dataclass(frozen=True)
class RiskReport(Risk):
    """The risk of a policy: of its undiscounted returns and, in `discounted`, of its discounted returns."""

    discounted: Risk
    """The same measures of sum_t gamma^t r_t."""
    gamma: float
    facts: dict[str, float]
    """The episode metrics of the environment, such as `goal_rate`, averaged over the episodes."""
    seed: int
    returns: NDArray[np.float64] = field(repr=False, compare=False)
    """The undiscounted return of each episode; read-only."""
    discounted_returns: NDArray[np.float64] = field(repr=False, compare=False)
    """The discounted return of each episode; read-only."""

    @classmethod
    def from_returns(
        cls,
        returns: ArrayLike,
        discounted_returns: ArrayLike | None = None,
        gamma: float = 1.0,
        facts: Mapping[str, Any] | None = None,
        seed: int = 0,
        measures: str | Iterable[str] = (),
        metrics: Mapping[str, Metric] | None = None,
    ) -> RiskReport:
        """Create a report from the returns of finished episodes, which may have been played anywhere.

        Args:
            returns: The undiscounted return of each episode, [n].
            discounted_returns: The discounted return of each episode, [n], in the same order; by default `returns`.
            gamma: The discount factor of `discounted_returns`.
            facts: Episode metrics, name -> [n]; the report holds their means.
            seed: Seed of the bootstrap; the same seed gives the same intervals.
            measures: Names of further measures, such as "semivariance" or "cvar:0.2"; see `risk.MEASURES`.
            metrics: Measures of your own: name -> a function from returns [n] to a number.
        """
        more = requested(measures, metrics)
        R = _as_sample(returns)
        R_gamma = R if discounted_returns is None else _as_sample(discounted_returns)
        if len(R) != len(R_gamma):
            raise ValueError(
                f"{len(R)} returns and {len(R_gamma)} discounted returns: each episode needs one of each. "
                "Pass both for the same episodes."
            )
        undiscounted = measure_risk(R, seed, more)
        return cls(
            **vars(undiscounted),
            discounted=undiscounted if np.array_equal(R, R_gamma) else measure_risk(R_gamma, seed, more),
            gamma=float(gamma),
            facts={name: float(np.mean(values)) for name, values in (facts or {}).items()},
            seed=int(seed),
            returns=R,
            discounted_returns=R_gamma,
        )

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.returns)

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, for `json.dumps`; non-finite numbers become None."""
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

    @property
    def episode_metrics(self) -> dict[str, float]:
        """The same as `facts`."""
        return self.facts

    def histogram(self, path: str | Path) -> Path:
        """Save a histogram of the returns with mean, Gini deviation and CVaR to `path`, such as returns.png."""
        return draw_histogram(self, path)

    def __str__(self) -> str:
        """A table of all measures, the episode metrics, and a text histogram of the returns."""
        columns = {"undiscounted": _cells(self)}
        if self.gamma < 1:
            columns[f"discounted by {self.gamma:g}"] = _cells(self.discounted)
        table = [["measure", *columns]]
        table += [[name, *(cells[name] for cells in columns.values())] for name in row_names(self)]
        title = f"{self.episodes} episodes, seed {self.seed}; [low, high] at {CONFIDENCE:.0%} confidence"
        blocks = [title, aligned(table)]
        if self.facts:
            blocks.append(aligned([[name, metric_text(name, value)] for name, value in self.facts.items()]))
        blocks.append(f"episodes by undiscounted return\n{text_histogram(self.returns)}")
        return "\n\n".join(blocks)


def measure_risk(returns: ArrayLike, seed: int, measures: str | Iterable[str] = ()) -> Risk:
    """All measures of a sample [n] of at least two returns, and the `measures` by name, with confidence intervals.

    `measures` may also be what `requested` returns.

    Intervals are bootstrapped: BCa (bias-corrected and accelerated) for n from 3 to 1000 and percentile intervals
    otherwise, from 2000 resamples up to n = 10,000 and from 20,000,000 / n, but at least 200, for larger n. A measure
    that BCa cannot handle, such as one that is equal in all resamples, gets a percentile interval. The interval of a
    constant sample is its value.

    Small samples contain little information about the tail. With 100 exponentially distributed returns, the actual
    coverage is 95 % for the mean, 93 % for the Gini deviation and `cvar_10`, but 88 % for the variance and 87 % for
    `cvar_05`. Use more episodes if you rely on these.
    """
    more = requested(measures)
    R = _as_sample(returns)
    worst, best = float(R.min()), float(R.max())
    if worst == best:
        # Exactly 0: floating-point error in the mean would give a deviation of about 1e-17.
        constant, zero = Estimate(worst, worst, worst), Estimate(0.0, 0.0, 0.0)
        known = {name: Estimate(*3 * (one.of_constant(R),)) for name, one in more.items()}
        return Risk(constant, zero, zero, zero, constant, constant, minimum=worst, maximum=best, measures=known)
    functions = statistics(more)
    statistic = stacked(functions)
    # Returns near the largest float have an infinite variance, which is a valid result.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        estimates = np.stack([statistic(R), *bootstrap_intervals((R,), statistic, seed)], axis=-1).tolist()
    by_name: dict[str, Any] = {name: Estimate(*estimate) for name, estimate in zip(functions, estimates, strict=True)}
    return risk_of(by_name, worst, best, more)


def risk_of(estimates: Mapping[str, Any], minimum: float, maximum: float, more: Iterable[str]) -> Risk:
    """From all estimates by name, of which `more` were asked for."""
    always = {name: estimates[name] for name in REPORTED}
    return Risk(**always, minimum=minimum, maximum=maximum, measures={name: estimates[name] for name in more})


def _as_sample(returns: ArrayLike) -> NDArray[np.float64]:
    """A validated, read-only float64 copy of the returns."""
    R = np.array(as_returns(returns)[1], dtype=np.float64)  # Checks that there are at least two, all of them finite.
    if R.ndim != 1:
        raise ValueError(
            f"returns have shape {R.shape}: a report describes a single sample. Pass one return for each episode, [n]."
        )
    R.setflags(write=False)
    return R


def bootstrap_intervals(
    samples: tuple[NDArray[np.float64], ...], statistic: Callable[..., NDArray[np.float64]], seed: int
) -> NDArray[np.float64]:
    """[2, k]: lower and upper limits of the confidence intervals of k statistics of a sample [n], or of paired samples.

    `statistic(*samples, axis)` maps [..., n] to [k, ...]. Several samples are resampled with the same indices, so that
    pairs are preserved.
    """
    # Imported here: the import takes half a second, and training does not need it.
    from scipy.stats import bootstrap

    n = len(samples[0])
    with warnings.catch_warnings():
        # BCa warns about measures it cannot handle; they get percentile intervals below.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = bootstrap(
            samples,
            statistic,
            vectorized=True,
            paired=len(samples) > 1,
            confidence_level=CONFIDENCE,
            n_resamples=int(np.clip(MAX_DRAWS // n, 200, RESAMPLES)),
            batch=max(1, BATCH_DRAWS // n),
            # BCa needs leave-one-out samples of at least two returns.
            method="BCa" if 3 <= n <= BCA_MAX_RETURNS else "percentile",
            rng=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(BOOTSTRAP_STREAM,))),
        )
    tail = (1 - CONFIDENCE) / 2
    percentile = np.quantile(result.bootstrap_distribution, [tail, 1 - tail], axis=-1)
    interval = np.stack(result.confidence_interval)
    return np.where(np.isnan(interval).any(axis=0), percentile, interval)


def risk_dict(risk: Risk) -> dict[str, Any]:
    """All measures by name, for JSON."""
    estimates = {
        name: {key: json_number(x) for key, x in estimate._asdict().items()}
        for name, estimate in risk.estimates.items()
    }
    return {
        **{name: estimates[name] for name in REPORTED},
        "minimum": risk.minimum,
        "maximum": risk.maximum,
        **({"measures": {name: estimates[name] for name in risk.measures}} if risk.measures else {}),
    }


def json_number(value: float) -> float | None:
    """`value`, or None if it is not finite, because JSON has no such numbers."""
    return value if math.isfinite(value) else None


def row_names(risk: Risk) -> list[str]:
    """The rows of a table, in order; a measure of every report that was asked for as well has one row."""
    return [*REPORTED, "minimum", "maximum", *(name for name in risk.measures if name not in REPORTED)]


def _cells(risk: Risk) -> dict[str, str]:
    """Measure -> cell text: one column of the table."""
    estimates = {name: str(estimate) for name, estimate in risk.estimates.items()}
    return {**estimates, "minimum": number_text(risk.minimum), "maximum": number_text(risk.maximum)}


def metric_text(name: str, value: float) -> str:
    """A metric as text: a rate in percent, anything else as a number."""
    return f"{100 * value:.1f} %" if name.endswith("_rate") else number_text(value)


def number_text(value: float) -> str:
    """Four significant digits; no exponent below one million."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value + 0.0:.4g}"  # + 0.0 turns -0.0 into 0.0.


def aligned(rows: list[list[str]], gap: int = 3) -> str:
    """Rows as lines of text, with columns padded to their widest cell, and `gap` spaces between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        (" " * gap).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
