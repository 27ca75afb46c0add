"""Numbers over seeds with intervals, from a results file, or from the tables of an earlier page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple

from steadyrl.reports.final_table import final_values
from steadyrl.reports.measures import DISCOUNTED_GD
from steadyrl.reports.results.file import read_results
from steadyrl.reports.results.results import Cell, Results
from steadyrl.reports.seed_statistics import iqm_over_seeds
from steadyrl.reports.tables import columns_of
from steadyrl.runs.experiment import Experiment, load_experiment

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
    origin: str
    """The file they are from, relative to the results' folder."""

    def get(self, variant: str, method: str, measure: str) -> Measured | None:
        """A measure of a method; None if it was not run."""
        raise NotImplementedError

    def sweep(self, variant: str, method: str, measure: str) -> dict[float, Measured]:
        """Lambda -> the measure in a study of lambdas."""
        raise NotImplementedError


class ResultsSource(Source):
    """From a results file: interquartile means over seeds. Methods that it lacks may be in an `earlier` source."""

    def __init__(self, path: Path, earlier: Source | None = None) -> None:
        self.results, self.origin = read_results(path), path.name
        self.experiment, self.earlier = self.results.experiment, None
        if earlier is not None and self._missing(earlier.experiment):
            self.experiment, self.earlier = earlier.experiment, earlier

    def _missing(self, experiment: Experiment) -> list[str]:
        cells = itertools.product(experiment.variants, experiment.methods)
        return [f"{v.name} {m.title}" for v, m in cells if (v.name, m.name) not in self.results.cells]

    @property
    def missing(self) -> list[str]:
        """What numbers of the earlier source are used for."""
        return [] if self.earlier is None else self._missing(self.experiment)

    def get(self, variant: str, method: str, measure: str) -> Measured | None:
        """See `Source`."""
        cell = self.results.cells.get((variant, method))
        if cell is None and self.earlier is not None:
            return self.earlier.get(variant, method, measure)
        return _of_cell(self.results, cell, measure)

    def sweep(self, variant: str, method: str, measure: str) -> dict[float, Measured]:
        """See `Source`."""
        found = {
            float(name.partition("=")[2]): _of_cell(study, cell, measure)
            for study in self.results.studies.values()
            for (place, name), cell in study.cells.items()
            if (place, name.partition("=")[0]) == (variant, method)
        }
        if not found and self.earlier is not None:
            return self.earlier.sweep(variant, method, measure)
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


_NUMBER = r"-?[\d.]+(?:e-?\d+)?"
_CELL = re.compile(rf"({_NUMBER}) \[({_NUMBER}), ({_NUMBER})\]( %)?")


class PageSource(Source):
    """From the tables of a page that `steadyrl reproduce` wrote before there were results files: means over seeds."""

    def __init__(self, path: Path, name: str, seeds: int) -> None:
        self.experiment, self.origin, self._seeds = load_experiment(name), path.name, seeds
        self._rows: dict[tuple[str, str], dict[str, Measured]] = {}
        heading: list[str] = []
        for line in path.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            if cells[1:2] == ["method"]:
                heading = [re.sub(r"\bGD$", DISCOUNTED_GD, cell) for cell in cells]  # As tables call it now.
            elif heading and len(cells) == len(heading):
                self._rows[cells[0], cells[1]] = {
                    name: self._measured(match)
                    for name, cell in zip(heading, cells, strict=True)
                    if (match := _CELL.fullmatch(cell))
                }

    def _measured(self, match: re.Match[str]) -> Measured:
        scale = 0.01 if match[4] else 1.0
        return Measured(*(float(match[part]) * scale for part in (1, 2, 3)), self._seeds, bool(match[4]))

    def _title(self, method: str) -> str:
        return next((one.title for one in self.experiment.methods if one.name == method), method)

    def get(self, variant: str, method: str, measure: str) -> Measured | None:
        """See `Source`."""
        return self._rows.get((variant, self._title(method)), {}).get(measure)

    def sweep(self, variant: str, method: str, measure: str) -> dict[float, Measured]:
        """See `Source`."""
        title = re.compile(rf"{re.escape(self._title(method))} ({_NUMBER})")
        return {
            float(match[1]): row[measure]
            for (place, name), row in self._rows.items()
            if place == variant and (match := title.fullmatch(name)) and measure in row
        }
