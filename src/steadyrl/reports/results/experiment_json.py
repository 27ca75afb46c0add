"""An experiment as JSON, and back: a results file has to be drawn after the experiment's own file has changed.

It has what was trained (variants, methods with their settings and budgets) and what figures show. How many seeds there
are, and how often was recorded, follows from the curves.
"""

from __future__ import annotations

import dataclasses
import math
import re
import reprlib
from typing import Any

from steadyrl.runs.experiment import (
    LAMBDA_CURVES,
    SENSITIVITY,
    STUDIES,
    Experiment,
    Method,
    Row,
    Scale,
    Sensitivity,
    Variant,
)
from steadyrl.runs.toml_file import from_table, part_of

_TEXTS = ("name", "title", "env", "engine")
_OF_METHODS = ("name", "agent", "title", "source", "settings")
_NAME = r"[A-Za-z0-9_-]+"
_NAMES = {
    "experiment": _NAME,
    "figures": _NAME,
    "methods": rf"{_NAME}(=[0-9.e+-]+)?",
    "variants": r"[A-Za-z0-9_-][A-Za-z0-9_ .=+-]*",
}
"""What names may be. They become names of files and folders, and a results file may come from anybody."""
_MOST = {"variants": 20, "methods": 200, "figures": 20}
_SCALE = {"seeds": 1, "episodes": 1, "episodes_per_record": 1, "episodes_per_evaluation": 1}
_MOST_ROWS = 20
"""Of a figure, whose size grows with them."""


def experiment_to_json(experiment: Experiment) -> dict[str, Any]:
    """Everything that figures and tables name, and all settings."""
    content: dict[str, Any] = {name: getattr(experiment, name) for name in _TEXTS}
    content |= {
        "variants": [dataclasses.asdict(variant) for variant in experiment.variants],
        "methods": [
            {**{name: getattr(method, name) for name in _OF_METHODS}, "budget": experiment.scale_of(method).budget}
            for method in experiment.methods
        ],
        "evaluation_episodes": experiment.evaluation_episodes,
        "figures": {name: [dataclasses.asdict(row) for row in rows] for name, rows in experiment.figures.items()},
        **dict.fromkeys(STUDIES),
    }
    for name, study in experiment.studies.items():
        values = {method: list(map(list, of_method.items())) for method, of_method in study.values.items()}
        parts = {"setting": study.setting, "values": values, "variants": list(study.variants)}
        content[name] = {**parts, "scale": dataclasses.asdict(study.scale)}
    return content


def experiment_from_json(content: Any) -> Experiment:
    """The experiment; a `ValueError` if something is missing or of another type."""
    if not isinstance(content, dict):
        raise ValueError("it has no experiment")
    figures = part_of(content, "figures", dict)
    name, title, env, engine = (part_of(content, key, str) for key in _TEXTS)
    experiment = Experiment(
        name=name,
        title=title,
        env=env,
        engine=engine,
        variants=tuple(from_table(Variant, table, "variants") for table in part_of(content, "variants", list)),
        methods=tuple(_method(table) for table in part_of(content, "methods", list)),
        scale=Scale(**_SCALE),
        sensitivity=_sensitivity(content, SENSITIVITY),
        lambda_curves=_sensitivity(content, LAMBDA_CURVES),
        evaluation_episodes=part_of(content, "evaluation_episodes", int),
        figures={
            figure: tuple(from_table(Row, row, f"figures.{figure}") for row in part_of(figures, figure, list))
            for figure in figures
        },
    )
    _check_names(experiment)
    _check_figures(experiment)
    return experiment


def _check_figures(experiment: Experiment) -> None:
    for name, rows in experiment.figures.items():
        if not 1 <= len(rows) <= _MOST_ROWS:
            raise ValueError(f"figures.{name}: it has {len(rows)} rows; from 1 to {_MOST_ROWS} are possible")
        for row in rows:
            if row.of not in ("training", "evaluations"):
                raise ValueError(f"figures.{name}: of is {reprlib.repr(row.of)}, not 'training' or 'evaluations'")
    for name, study in experiment.studies.items():
        _check_study(experiment, name, study)


def _check_study(experiment: Experiment, name: str, study: Sensitivity) -> None:
    if name not in experiment.figures:
        raise ValueError(f"figures: there is none of the study {name}")
    varied = [method for method in experiment.methods if method.name in study.values]
    if not 1 <= len(varied) <= _MOST["variants"]:
        raise ValueError(f"{name}: it has {len(varied)} methods; from 1 to {_MOST['variants']} are possible")
    if study.variants and not any(variant.name in study.variants for variant in experiment.variants):
        raise ValueError(f"{name}: it is about variants that the experiment does not have")
    for method in varied:
        _number(method.settings.get(study.setting), f"methods.{method.name}.{study.setting}")


def _number(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{where}: a number is needed, not {reprlib.repr(value)}")
    return float(value)


def _check_names(experiment: Experiment) -> None:
    named: dict[str, list[str]] = {
        "experiment": [experiment.name],
        "figures": [*experiment.figures],
        "methods": [method.name for method in experiment.methods],
        "variants": [variant.name for variant in experiment.variants],
    }
    for part, names in named.items():
        if not 1 <= len(set(names)) == len(names) <= _MOST.get(part, 1):
            raise ValueError(
                f"{part}: {len(names)} are named; from 1 to {_MOST[part]} are possible, of different names"
            )
        for name in names:
            if not re.fullmatch(_NAMES[part], name):
                raise ValueError(f"{part}: {reprlib.repr(name)} cannot be a name: use letters, digits, _ and -")


def _method(table: Any) -> Method:
    if not isinstance(table, dict):
        raise ValueError(f"methods: a table is needed, not {reprlib.repr(table)}")
    budget = part_of(table, "budget", dict, where="methods.")
    if len(budget) != 1 or not budget.keys() <= {"episodes", "timesteps"}:
        raise ValueError("methods: a budget is {'episodes': n} or {'timesteps': n}")
    from_table(Scale, {**_SCALE, **budget}, "methods.budget")
    given = {name: value for name, value in table.items() if name != "budget"}
    return from_table(Method, {**given, "quick": True, "scale": {"timesteps": 0, **budget}}, "methods")


def _sensitivity(parts: dict[str, Any], study: str) -> Sensitivity | None:
    if parts.get(study) is None:
        return None
    content = part_of(parts, study, dict)
    values = part_of(content, "values", dict, where=f"{study}.")
    by_method = {name: _varied(values, name, f"{study}.values.") for name in values}
    scale = from_table(Scale, content.get("scale"), f"{study}.scale")
    variants = tuple(map(str, part_of(content, "variants", list, [], f"{study}.")))
    return Sensitivity(part_of(content, "setting", str, where=f"{study}."), by_method, scale, variants)


def _varied(values: dict[str, Any], name: str, within: str) -> dict[float, dict[str, Any]]:
    """Value -> the settings that change with it."""
    where, varied = f"{within}{name}", {}
    for pair in part_of(values, name, list, where=within):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], dict)):
            raise ValueError(f"{where}: a value and a table are needed, not {reprlib.repr(pair)}")
        varied[_number(pair[0], where)] = pair[1]
    if not varied:
        raise ValueError(f"{where}: it has no value")
    return varied
