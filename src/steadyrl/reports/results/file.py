"""results.json.gz: the results of an experiment in one small file, the same bytes for the same results."""

from __future__ import annotations

import gzip
import io
import json
import reprlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from steadyrl.base.files import write_atomic
from steadyrl.base.parsing import parse_json
from steadyrl.reports.figures.curves import Curves, Recorded
from steadyrl.reports.results.compact import COUNTERS, CURVE_DIGITS, fixed, significant
from steadyrl.reports.results.experiment_json import experiment_from_json, experiment_to_json
from steadyrl.reports.results.results import (
    QUANTILES,
    RISK,
    STUDY_FIELDS,
    Cell,
    Cells,
    FinalPolicy,
    Provenance,
    Results,
)
from steadyrl.runs.experiment import Experiment
from steadyrl.runs.toml_file import part_of

RESULTS = "results.json.gz"
"""The name of the file in a folder of results."""
VERSION = 1
"""Raised when a file written now could not be read by older code."""
_KIND = "steadyrl results"
_COUNTER_DIGITS = 10
_MAX_BYTES = 2**26
"""Of the unpacked content: a file may come from anybody."""
_MAX_NUMBERS = 10**6
"""Of a curve: seeds times points, since a row that is the same for all seeds is written once."""


def write_results(results: Results, path: Path) -> None:
    """Write a results file."""
    content = {"kind": _KIND, "version": VERSION, **_to_json(results)}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    write_atomic(path, gzip.compress(text.encode(), compresslevel=9, mtime=0))


def read_results(path: Path) -> Results:
    """Read a results file; a `ValueError` in one line if it is something else, or damaged."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(path.read_bytes())) as file:
            text = file.read(_MAX_BYTES + 1)
        content = parse_json(text) if len(text) <= _MAX_BYTES else None
    except (ValueError, OSError, EOFError, zlib.error):
        content = None
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise ValueError(f"{path} is no {RESULTS} of `steadyrl reproduce`, or only a part of one.")
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} is damaged: {reprlib.repr(version)} is no version of results files.")
    if version > VERSION:
        raise ValueError(
            f"{path} was written by a newer steadyrl (version {reprlib.repr(version)} of results files): upgrade."
        )
    try:
        return _from_json(content)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is damaged: {' '.join(reason.split()).rstrip('.')}.") from None


def _to_json(results: Results) -> dict[str, Any]:
    return {
        "experiment": experiment_to_json(results.experiment),
        "provenance": results.provenance._asdict(),
        "evaluation_episodes": results.evaluation_episodes,
        "cells": [_cell_to_json(cell) for cell in results.cells.values()],
        **dict.fromkeys(STUDY_FIELDS.values()),
        **{STUDY_FIELDS[name]: _to_json(study) for name, study in results.studies.items()},
    }


def _from_json(content: dict[str, Any]) -> Results:
    experiment = experiment_from_json(content["experiment"])
    return Results(
        experiment,
        _cells(content["cells"], experiment),
        _provenance(part_of(content, "provenance", dict)),
        part_of(content, "evaluation_episodes", int),
        **{field: _study(content, field) for field in STUDY_FIELDS.values()},
    )


def _study(content: dict[str, Any], field: str) -> Results | None:
    """The results of a study; files from before there was `lambda_curves` do not have it."""
    if content.get(field) is None:
        return None
    study = part_of(content, field, dict)
    if any(study.get(other) is not None for other in STUDY_FIELDS.values()):
        raise ValueError(f"the study in {field} has another one")
    return _from_json(study)


def _provenance(content: dict[str, Any]) -> Provenance:
    command, date, commit = (part_of(content, name, str, where="provenance.") for name in ("command", "date", "commit"))
    versions = part_of(content, "versions", dict, where="provenance.")
    for name in versions:
        part_of(versions, name, str, where="provenance.versions.")
    return Provenance(command, date, versions, commit)


def _cell_to_json(cell: Cell) -> dict[str, Any]:
    return {
        "variant": cell.variant.name,
        "method": cell.method.name,
        "seeds": list(cell.seeds),
        "training": _curves_to_json(cell.recorded.training),
        "evaluations": _curves_to_json(cell.recorded.evaluations),
        "finals": {
            heading: [significant(float(value)) for value in values]
            for heading, values in (cell.recorded.finals or {}).items()
        },
        "notes": list(cell.recorded.notes),
        "policies": [None if policy is None else _policy_to_json(policy) for policy in cell.policies],
    }


def _cells(content: Any, experiment: Experiment) -> Cells:
    if not isinstance(content, list) or not content:
        raise ValueError(f"cells: a list of runs is needed, not {reprlib.repr(content)}")
    variants = {variant.name: variant for variant in experiment.variants}
    methods = {method.name: method for method in experiment.methods}
    cells: Cells = {}
    for one in content:
        variant, method = variants[one["variant"]], methods[one["method"]]
        seeds = tuple(int(seed) for seed in one["seeds"])
        unit = next(iter(experiment.scale_of(method).budget))
        training, evaluations = (_curves(one[kind], len(seeds), unit) for kind in ("training", "evaluations"))
        finals = {heading: _numbers(values, (len(seeds),), heading) for heading, values in one["finals"].items()}
        policies = tuple(None if policy is None else _policy(policy) for policy in one["policies"])
        if len(policies) not in (0, len(seeds)):
            raise ValueError(f"there are {len(seeds)} seeds and {len(policies)} final policies")
        recorded = Recorded(training, evaluations, tuple(map(str, one["notes"])), finals)
        cells[variant.name, method.name] = Cell(variant, method, recorded, seeds, policies)
    return cells


def _curves_to_json(curves: Curves) -> dict[str, Any]:
    """Counters that are the same for all seeds are written once."""
    content: dict[str, Any] = {}
    for name, values in curves.items():
        same = name in COUNTERS and bool((values == values[:1]).all())
        content[name] = fixed(values[:1] if same else values, _COUNTER_DIGITS if name in COUNTERS else CURVE_DIGITS)
    return content


def _curves(content: dict[str, Any], seeds: int, unit: str) -> Curves:
    curves: Curves = {}
    points = max((len(rows[0]) for rows in content.values()), default=0)
    if seeds * points > _MAX_NUMBERS:
        raise ValueError(f"curves of {seeds:,} seeds with {points:,} points are larger than {_MAX_NUMBERS:,} numbers")
    if content and not {unit, "episodes"} <= content.keys():
        raise ValueError(f"curves have no {unit if unit not in content else 'episodes'}")
    if content and not (seeds and points):
        raise ValueError("there are curves without seeds or points")
    for name, rows in content.items():
        count = 1 if name in COUNTERS and len(rows) == 1 else seeds
        curves[name] = np.broadcast_to(_numbers(rows, (count, points), name), (seeds, points))
    return curves


def _policy_to_json(policy: FinalPolicy) -> dict[str, Any]:
    def rounded(numbers: dict[str, float]) -> dict[str, Any]:
        return {name: significant(value) for name, value in numbers.items()}

    return {
        "returns": rounded(policy.returns),
        "discounted": rounded(policy.discounted),
        "episode_metrics": rounded(policy.episode_metrics),
        "quantiles": [significant(float(quantile), CURVE_DIGITS) for quantile in policy.quantiles],
        "greedy_mean": significant(policy.greedy_mean),
    }


def _policy(content: dict[str, Any]) -> FinalPolicy:
    def numbers(part: dict[str, Any], names: Any) -> dict[str, float]:
        return {name: float(_numbers(part[name], (), name)) for name in names}

    metrics = content["episode_metrics"]
    return FinalPolicy(
        numbers(content["returns"], RISK),
        numbers(content["discounted"], RISK),
        numbers(metrics, metrics),
        _numbers(content["quantiles"], (QUANTILES,), "quantiles"),
        float(_numbers(content["greedy_mean"], (), "greedy_mean")),
    )


def _numbers(content: Any, shape: tuple[int, ...], name: str) -> Any:
    """An array of that shape, with NaN for null; an error names it."""
    array = np.asarray(content, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    return array
