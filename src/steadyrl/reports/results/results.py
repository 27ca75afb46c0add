"""The results of an experiment, seed by seed: what its tables and figures are made from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.evaluation.reported import REPORTED
from steadyrl.reports.figures.curves import Recorded
from steadyrl.runs.experiment import LAMBDA_CURVES, SENSITIVITY, Experiment, Method, Sensitivity, Variant
from steadyrl.runs.final_evaluation import Evaluated

RISK = ("mean", "standard_deviation", "variance", "gini_deviation", "cvar_10")
"""The measures of a final policy's returns."""
QUANTILES = 101
"""Quantiles of a final policy's returns, from the lowest to the highest in equal steps of probability."""


class FinalPolicy(NamedTuple):
    """The evaluation episodes of the final policy of one run, in numbers."""

    returns: dict[str, float]
    """RISK of the returns, of the stochastic policy."""
    discounted: dict[str, float]
    """RISK of the discounted returns."""
    episode_metrics: dict[str, float]
    """The means of the environment's own metrics, such as visiting_rate."""
    quantiles: NDArray[np.float64]
    """[QUANTILES]: of the returns."""
    greedy_mean: float
    """The mean return with the most likely actions; NaN if that was not evaluated."""

    @classmethod
    def of(cls, evaluated: Evaluated, greedy: Evaluated | None) -> FinalPolicy:
        """From the episodes of the stochastic policy and, if there are any, of the greedy one."""
        returns, discounted = (
            {name: float(REPORTED[name](R)) for name in RISK} for R in (evaluated.returns, evaluated.discounted_returns)
        )
        metrics = {name: float(values.mean()) for name, values in evaluated.episode_metrics.items()}
        quantiles = np.quantile(evaluated.returns, np.linspace(0, 1, QUANTILES))
        return cls(returns, discounted, metrics, quantiles, float(greedy.returns.mean()) if greedy else np.nan)


class Cell(NamedTuple):
    """The runs of one method in one variant."""

    variant: Variant
    method: Method
    recorded: Recorded
    seeds: tuple[int, ...] = ()
    """Of its complete runs, in the order of the recorded curves."""
    policies: tuple[FinalPolicy | None, ...] = ()
    """For each seed, if they were evaluated."""


Cells = dict[tuple[str, str], Cell]
"""(variant, method) -> its runs."""


class Provenance(NamedTuple):
    """How the runs were made."""

    command: str
    """Each of those that trained them in a line of its own."""
    date: str
    """When the last run was started, as YYYY-MM-DD."""
    versions: dict[str, str]
    """Of Python and packages; empty if they were not recorded."""
    commit: str
    """Those of the code, separated by spaces, "unknown" for runs that have not recorded it; empty if not looked for."""


@dataclass(frozen=True)
class Results:
    """The complete runs of an experiment. Cells may have different numbers of seeds; those without a run are absent."""

    experiment: Experiment
    """With the methods that have runs, for as long as these were trained."""
    cells: Cells
    provenance: Provenance
    evaluation_episodes: int
    """How many episodes each final policy was evaluated in."""
    sweep: Results | None = None
    """Those of the sensitivity study, if there is one."""
    lambda_curves: Results | None = None
    """Those of the study that is drawn as curves, if there is one."""

    @property
    def studies(self) -> dict[str, Results]:
        """Study -> its results, of those that there are."""
        found = {name: getattr(self, field) for name, field in STUDY_FIELDS.items()}
        return {name: results for name, results in found.items() if results is not None}

    def with_study(self, name: str, study: Sensitivity, results: Results) -> Results:
        """The same with a study and its results."""
        if name == SENSITIVITY:
            experiment = dataclasses.replace(self.experiment, sensitivity=study)
            return dataclasses.replace(self, experiment=experiment, sweep=results)
        experiment = dataclasses.replace(self.experiment, lambda_curves=study)
        return dataclasses.replace(self, experiment=experiment, lambda_curves=results)


STUDY_FIELDS = {SENSITIVITY: "sweep", LAMBDA_CURVES: "lambda_curves"}
"""Study -> the field of `Results` that has it, which is also its name in results files."""
