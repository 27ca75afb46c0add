"""Numbers over seeds with intervals, from a results file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from steadyrl.reports.final_table import final_values
from steadyrl.reports.results.file import read_results
from steadyrl.reports.results.results import Cell, Results
from steadyrl.reports.seed_statistics import iqm_over_seeds
from steadyrl.reports.tables import columns_of
from steadyrl.runs.experiment import Experiment

FINAL = "final "
"""Begins the name of a measure of the final policies; others are columns of the table of training."""


class Measured(NamedTuple):
    """A measure of one method: a value with a 95 % interval over seeds, NaN if there are too few."""

    value: float
    low: float
    high: float
    seeds: int
    rate: bool = False
    """Whether it is a share of episodes or steps, from 0 to 1."""

    def __str__(self) -> str:
        """For example 62 [60, 63] %, or 9.85 [9.61, 10.1]; without an interval if there is none."""
        numbers = [_text(number * 100 if self.rate else number) for number in self[:3]]
        interval = "" if self.low != self.low else f" [{numbers[1]}, {numbers[2]}]"
        return f"{numbers[0]}{interval}{' %' * self.rate}"


def _text(number: float) -> str:
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    text = f"{number + 0.0:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Source:
    """The numbers of one domain."""

    experiment: Experiment

    def get(self, variant: str, method: str, measure: str) -> Measured | None:
        """A measure of a method; None if it was not run."""
        raise NotImplementedError

    def sweep(self, variant: str, method: str, measure: str) -> dict[float, Measured]:
        """Lambda -> the measure in a study of lambdas."""
        raise NotImplementedError


class ResultsSource(Source):
    """From a results file: interquartile means over seeds."""

    def __init__(self, path: Path) -> None:
        self.results = read_results(path)
        self.experiment = self.results.experiment

    def get(self, variant: str, method: str, measure: str) -> Measured | None:
        """See `Source`."""
        return _of_cell(self.results, self.results.cells.get((variant, method)), measure)

    def sweep(self, variant: str, method: str, measure: str) -> dict[float, Measured]:
        """See `Source`."""
        found = {
            float(name.partition("=")[2]): _of_cell(study, cell, measure)
            for study in self.results.studies.values()
            for (place, name), cell in study.cells.items()
            if (place, name.partition("=")[0]) == (variant, method)
        }
        return {aversion: one for aversion, one in found.items() if one is not None}


def _of_cell(results: Results, cell: Cell | None, measure: str) -> Measured | None:
    if cell is None:
        return None
    if measure.startswith(FINAL):
        name = measure.removeprefix(FINAL)
        values, rate = final_values(cell).get(name), name.endswith("_rate")
    else:
        columns = {column.heading: column for column in columns_of(results.experiment, results.cells.values())}
        column = columns.get(measure)
        values = column.values(cell.recorded) if column is not None else None
        rate = column is not None and column.metric.endswith("_rate")
    if values is None or not len(values):
        return None
    return Measured(*iqm_over_seeds(values), seeds=len(values), rate=rate)
