"""Comparison of two methods, each with several training seeds: differences that hold for other seeds too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyrl.evaluation.reported import Requested, higher_is_better, statistics
from steadyrl.evaluation.risk_report import (
    CONFIDENCE,
    Estimate,
    RiskReport,
    aligned,
    json_number,
    metric_text,
    number_text,
)
from steadyrl.evaluation.seed_resamples import seed_intervals

FEW_SEEDS = 5
"""With fewer, a bootstrap over seeds has few values to draw from, and its intervals tend to be too narrow."""


@dataclass(frozen=True)
class MethodComparison:
    """The difference a - b between two methods, of undiscounted returns, with intervals over runs and episodes.

    A method is what its runs have in common: they differ in the seed of training. Measures are of the returns of all
    its runs together. Each interval is at 95 % confidence on its own, not jointly, and may be too narrow if there are
    fewer than 5 runs: see docs/comparing.md.
    """

    a: dict[str, Estimate]
    """Measures of the first method, by name."""
    b: dict[str, Estimate]
    difference: dict[str, Estimate]
    """a - b."""
    iqm: dict[str, Estimate]
    """Interquartile mean of the runs' mean returns, of "a", "b" and the "difference"."""
    probability_of_improvement: dict[str, Estimate]
    """How probable it is, by each measure, that a run of a is better than a run of b; equal ones count half.

    For measures of your own, that it has the higher value.
    """
    runs_a: tuple[RiskReport, ...] = field(repr=False)
    """The report of each run."""
    runs_b: tuple[RiskReport, ...] = field(repr=False)

    @classmethod
    def of(
        cls, a: Sequence[RiskReport], b: Sequence[RiskReport], measures: Mapping[str, Requested] | None = None
    ) -> MethodComparison:
        """From a report of each run, all with the same number of episodes and seed."""
        reports = (*a, *b)
        for name in ("episodes", "seed"):
            values = sorted({getattr(report, name) for report in reports})
            if len(values) > 1:
                raise ValueError(
                    f"{name} is {values[0]} in one report and {values[-1]} in another: their episodes cannot be "
                    f"paired. Evaluate all with the same {name}."
                )
        A, B = (np.stack([report.returns for report in method]) for method in (a, b))
        found = seed_intervals(A, B, statistics(measures or {}), reports[0].seed)
        improvement = {
            name: Estimate(1 - p.value, 1 - p.high, 1 - p.low) if higher_is_better(name) is False else p
            for name, p in found.improvement.items()
        }
        return cls(found.a, found.b, found.difference, found.iqm, improvement, tuple(a), tuple(b))

    @property
    def better(self) -> dict[str, str | None]:
        """For each measure, the better method, "a" or "b"; None if the interval of the difference contains 0.

        Also None, except for the mean, if one method has more runs: the returns of more runs together vary more.
        """
        winners: dict[str, str | None] = {}
        for name, (_, low, high) in self.difference.items():
            higher = higher_is_better(name)
            comparable = higher is not None and (self._as_many_runs or name == "mean")
            conclusive = comparable and (low > 0 or high < 0)
            winners[name] = ("a" if (low > 0) == higher else "b") if conclusive else None
        return winners

    @property
    def _as_many_runs(self) -> bool:
        return len(self.runs_a) == len(self.runs_b)

    @property
    def facts(self) -> dict[str, tuple[float, float]]:
        """The episode metrics of both methods, averaged over their runs."""
        every = (*self.runs_a, *self.runs_b)
        names = [name for name in every[0].facts if all(name in run.facts for run in every)]

        def mean(name: str, runs: Sequence[RiskReport]) -> float:
            return float(np.mean([run.facts[name] for run in runs]))

        return {name: (mean(name, self.runs_a), mean(name, self.runs_b)) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, for `json.dumps`; non-finite numbers become None."""
        named = {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "iqm": self.iqm,
            "probability_of_improvement": self.probability_of_improvement,
        }
        return {
            "confidence": CONFIDENCE,
            "runs": {"a": len(self.runs_a), "b": len(self.runs_b)},
            "episodes": self.runs_a[0].episodes,
            "seed": self.runs_a[0].seed,
            **{key: {name: _json(estimate) for name, estimate in part.items()} for key, part in named.items()},
            "better": self.better,
            "facts": {name: dict(zip("ab", map(json_number, pair), strict=True)) for name, pair in self.facts.items()},
            "run_reports": {
                "a": [report.to_dict() for report in self.runs_a],
                "b": [report.to_dict() for report in self.runs_b],
            },
        }

    def __str__(self) -> str:
        """Tables of both methods and their differences, and what they amount to."""
        runs, first = (len(self.runs_a), len(self.runs_b)), self.runs_a[0]
        title = (
            f"{runs[0]} and {runs[1]} runs, {first.episodes} episodes each, seed {first.seed}\n"
            "a - b, and the probability that a run of a is better than a run of b, "
            f"with [low, high] at {CONFIDENCE:.0%} confidence over runs and episodes"
        )
        blocks = [title, aligned(self._rows())]
        if self.facts:
            rows = [[name, *(metric_text(name, value) for value in pair)] for name, pair in self.facts.items()]
            blocks.append(aligned([["metric", "a", "b"], *rows]))
        if min(runs) < FEW_SEEDS:
            blocks.append(f"With fewer than {FEW_SEEDS} runs of a method, intervals may be too narrow.")
        if not self._as_many_runs:
            blocks.append(
                "Only means are compared: the returns of more runs together vary more, whatever the method. "
                f"For the other measures give as many runs of each ({min(runs)})."
            )
        blocks.append(self._conclusion())
        return "\n\n".join(blocks)

    def _rows(self) -> list[list[str]]:
        rows = [["undiscounted", "a", "b", "a - b", "P(a better)", "better"]]
        iqm = self.iqm
        for name, difference in self.difference.items():
            values = [number_text(method[name].value) for method in (self.a, self.b)]
            probability = str(self.probability_of_improvement[name])
            if higher_is_better(name) is None:
                probability += " (higher)"
            rows.append([name, *values, str(difference), probability, self.better[name] or ""])
        values = [number_text(iqm[method].value) for method in "ab"]
        rows.insert(2, ["iqm of run means", *values, str(iqm["difference"]), "", ""])
        return rows

    def _conclusion(self) -> str:
        def winner(measure: str) -> str:
            if measure != "mean" and not self._as_many_runs:
                return "not compared"
            return self.better[measure] or "inconclusive with these runs and episodes"

        return f"Higher mean: {winner('mean')}. Steadier, by Gini deviation: {winner('gini_deviation')}."


def _json(estimate: Estimate) -> dict[str, float | None]:
    return {key: json_number(x) for key, x in estimate._asdict().items()}
