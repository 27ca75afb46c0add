"""An experiment of the paper as data: which methods, with which settings, in which variants of an environment."""

from __future__ import annotations

import dataclasses
import itertools
import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from steadyrl.agents import agent_class
from steadyrl.base.names import unknown
from steadyrl.runs.job import Job, command_line
from steadyrl.runs.sweep import MAX_BUDGET, MAX_RUNS, check_number_of_seeds
from steadyrl.runs.toml_file import from_table, part_of, read_toml
from steadyrl.training.run import Plan

SENSITIVITY, LAMBDA_CURVES = "sensitivity", "lambda_curves"
STUDIES = (SENSITIVITY, LAMBDA_CURVES)
"""The studies of one setting over several values; their figures have the same names."""


@dataclass(frozen=True)
class Method:
    """An agent with settings, under the name that figures give it."""

    name: str
    agent: str
    title: str
    source: str
    """Where the settings come from: printed in the paper, or calibrated."""
    settings: dict[str, Any]
    quick: bool
    """Whether it is part of the quick scale."""
    scale: dict[str, int] = dataclasses.field(default_factory=dict)
    """The parts of the experiment's scale that differ for this method."""


@dataclass(frozen=True)
class Variant:
    """The environment with some options."""

    name: str
    options: dict[str, Any]

    @property
    def folder(self) -> str:
        """The name of the folder of its runs."""
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Scale:
    """For how long to train, and with how many seeds."""

    seeds: int
    episodes: int
    episodes_per_record: int
    episodes_per_evaluation: int
    """Training episodes from one evaluation to the next."""
    timesteps: int = 0
    """How many steps to train for, in place of `episodes`; 0 to count episodes."""
    first_seed: int = 0
    """Seeds are this one and those after it."""

    def __post_init__(self) -> None:
        check_number_of_seeds(self.seeds)
        for field in dataclasses.fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("timesteps", "first_seed") else 1
            if not least <= value <= MAX_BUDGET:
                raise ValueError(f"{field.name} {value}: a number from {least} to {MAX_BUDGET:,} is needed.")

    @property
    def budget(self) -> dict[str, int]:
        """For how long to train, in episodes or in steps."""
        return {"timesteps": self.timesteps} if self.timesteps else {"episodes": self.episodes}


@dataclass(frozen=True)
class Row:
    """A row of panels in a figure: one measure over training."""

    metric: str
    label: str
    of: str = "training"
    """"training" for the training episodes, "evaluations" for the evaluations during training."""
    so_far: bool = False
    """Whether it is averaged over all episodes since the start of training."""


@dataclass(frozen=True)
class Sensitivity:
    """One setting over several values, for some of the methods."""

    setting: str
    values: dict[str, dict[float, dict[str, Any]]]
    """Method -> value -> all the settings that change with it, among them `setting` itself."""
    scale: Scale
    variants: tuple[str, ...] = ()
    """The names of the variants that it is about; empty for all of them."""


@dataclass(frozen=True)
class Experiment:
    """What to train, and for how long."""

    name: str
    title: str
    env: str
    engine: str
    """Where episodes come from; "auto" by default."""
    variants: tuple[Variant, ...]
    methods: tuple[Method, ...]
    scale: Scale
    sensitivity: Sensitivity | None
    """A study that is drawn over the values of the setting, at the end of training."""
    evaluation_episodes: int
    """How many episodes an evaluation plays."""
    figures: dict[str, tuple[Row, ...]]
    """The figures' names and rows."""
    not_quick: tuple[Method, ...] = ()
    """Methods that the quick scale omits, at that scale."""
    lambda_curves: Sensitivity | None = None
    """A study that is drawn over training, with a curve for each value."""

    def cells(self, out: Path, loggers: Sequence[str] = ()) -> dict[tuple[str, str], Job]:
        """(variant, method) -> a job with all seeds."""
        cells = {}
        for variant, method in itertools.product(self.variants, self.methods):
            scale = self.scale_of(method)
            plan = Plan(
                scale.budget,
                episodes_per_record=scale.episodes_per_record,
                evaluations={"every": scale.episodes_per_evaluation, "episodes": self.evaluation_episodes},
                command=command_line(),
            )
            cells[variant.name, method.name] = Job.cell(
                env=self.env,
                env_options=variant.options,
                agent=method.agent,
                settings=method.settings,
                seeds=range(scale.first_seed, scale.first_seed + scale.seeds),
                folder=out / variant.folder / method.name,
                title=f"{variant.name}  {method.title}",
                plan=plan,
                engine=self.engine,
                loggers=tuple(loggers),
            )
        return cells

    def scale_of(self, method: Method) -> Scale:
        """The scale that a method is trained at."""
        return dataclasses.replace(self.scale, **method.scale)

    def by_unit(self) -> dict[str, Experiment]:
        """Unit -> the experiment with those methods alone whose budget is in "episodes", or in "timesteps"."""
        units = {method.name: next(iter(self.scale_of(method).budget)) for method in self.methods}
        return {
            unit: dataclasses.replace(self, methods=tuple(m for m in self.methods if units[m.name] == unit))
            for unit in sorted(set(units.values()))
        }

    def only(self, names: Sequence[str]) -> Experiment:
        """With these methods alone; a name is a method's or that of its agent."""
        known, slow = (
            {name for method in methods for name in (method.name, method.agent)}
            for methods in (self.methods, self.not_quick)
        )
        for name in names:
            if name not in known and name in slow:
                raise ValueError(f"{name} is not part of the quick scale: leave out --quick, and give --timesteps.")
            if name not in known:
                raise ValueError(unknown("method", name, known))
        chosen = tuple(m for m in self.methods if m.name in names or m.agent in names)
        return dataclasses.replace(self, methods=chosen)

    @property
    def studies(self) -> dict[str, Sensitivity]:
        """Those of STUDIES that there are."""
        found = {name: getattr(self, name) for name in STUDIES}
        return {name: study for name, study in found.items() if study is not None}

    def without_studies(self) -> Experiment:
        """The same without studies."""
        return dataclasses.replace(self, sensitivity=None, lambda_curves=None)

    def sensitivity_experiment(self) -> Experiment | None:
        """The sensitivity study as an experiment: a method METHOD=VALUE for each value; None if there is none."""
        return self.study_experiments().get(SENSITIVITY)

    def study_experiments(self) -> dict[str, Experiment]:
        """Study -> an experiment with a method METHOD=VALUE for each value; without studies of other methods."""
        found = {name: self._varied(study) for name, study in self.studies.items()}
        return {name: experiment for name, experiment in found.items() if experiment.methods}

    def _varied(self, study: Sensitivity) -> Experiment:
        methods = tuple(
            dataclasses.replace(
                method,
                name=f"{method.name}={value:g}",
                title=f"{method.title} {value:g}",
                source=f"{study.setting} {value:g}; the rest as {method.title} in the main experiment",
                settings={**method.settings, **changed},
                scale={},
            )
            for method in self.methods
            for value, changed in study.values.get(method.name, {}).items()
        )
        variants = tuple(v for v in self.variants if v.name in study.variants or not study.variants)
        varied = dataclasses.replace(self, methods=methods, variants=variants, scale=study.scale)
        return varied.without_studies()


def names() -> list[str]:
    """The names of all experiments."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load_experiment(
    name: str,
    *,
    quick: bool = False,
    seeds: int | None = None,
    episodes: int | None = None,
    timesteps: int | None = None,
) -> Experiment:
    """The experiment by that name, at full or quick scale; the other arguments override the file.

    `episodes` are for every method, and studies have no more than that; `timesteps` are for methods that are trained
    for steps.
    """
    if name not in names():
        raise ValueError(unknown("experiment", name, names()))
    if episodes is not None and timesteps is not None:
        raise ValueError("give --episodes or --timesteps, not both.")
    for option, value in (("seeds", seeds), ("episodes", episodes), ("timesteps", timesteps)):
        if value is not None and value < 1:
            raise ValueError(f"--{option} {value}: at least 1 is needed.")
    given = {key: value for key, value in (("seeds", seeds), ("episodes", episodes)) if value is not None}
    path = _folder() / f"{name}.toml"
    data = read_toml(path)
    try:
        methods = _methods(part_of(data, "methods", dict))
        if quick or episodes:
            methods = tuple(_without_episodes(method) for method in methods)
        if timesteps or episodes:
            methods = tuple(_with_timesteps(method, timesteps or 0) for method in methods)
        methods_here = tuple(method for method in methods if method.quick or not quick)
        if timesteps is not None and not any("timesteps" in method.scale for method in methods_here):
            reason = f"no method of {name}{' --quick' * quick} is trained for steps. Use --episodes."
            raise ValueError(f"--timesteps: {reason}")
        experiment = _experiment(name, data, methods_here, quick, given)
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith("--") else f"{path}: {error}") from None
    return dataclasses.replace(experiment, not_quick=tuple(method for method in methods if quick and not method.quick))


def _experiment(
    name: str, data: dict[str, Any], methods: tuple[Method, ...], quick: bool, given: dict[str, int]
) -> Experiment:
    """The experiment of a file's tables, with `given` in place of a part of its scale."""
    for key in data:
        if key not in _KEYS:
            raise ValueError(unknown("key", key, _KEYS))
    scale = "quick" if quick else "full"
    variants, figures = part_of(data, "variants", list), part_of(data, "figures", dict)
    studies = {name: _sensitivity(data, table, given) for name, table in _STUDY_TABLES.items() if table in data}
    experiment = Experiment(
        name=name,
        title=part_of(data, "title", str),
        env=part_of(data, "env", str),
        engine=part_of(data, "engine", str, "auto"),
        variants=tuple(from_table(Variant, variant, "variants") for variant in variants),
        methods=methods,
        scale=from_table(Scale, {**part_of(data, scale, dict), **given}, scale),
        sensitivity=None if quick else studies.get(SENSITIVITY),
        lambda_curves=None if quick else studies.get(LAMBDA_CURVES),
        evaluation_episodes=part_of(data, "evaluation_episodes", int),
        figures={
            figure: tuple(from_table(Row, row, f"figures.{figure}") for row in part_of(figures, figure, list))
            for figure in figures
        },
    )
    for method in methods:
        from_table(Scale, {**dataclasses.asdict(experiment.scale), **method.scale}, f"methods.{method.name}.scale")
    runs = len(variants) * len(methods) * experiment.scale.seeds
    if runs > MAX_RUNS:
        raise ValueError(
            f"this experiment has {runs:,} runs: {len(variants):,} variants x {len(methods):,} methods x "
            f"{experiment.scale.seeds:,} seeds. At most {MAX_RUNS:,} are possible: give fewer seeds."
        )
    return experiment


def _methods(tables: dict[str, Any]) -> tuple[Method, ...]:
    """The methods of a file; an unknown agent or setting is found before anything is trained."""
    methods = []
    for key in tables:
        where = f"methods.{key}"
        method = from_table(Method, {**_completed(tables, key), "name": key}, where)
        try:
            agent_class(method.agent).settings_of(method.settings)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        methods.append(method)
    return tuple(methods)


def _completed(tables: dict[str, Any], key: str) -> dict[str, Any]:
    """The table of a method; with `like = OTHER`, what its settings leave out is as in the method OTHER."""
    table = dict(part_of(tables, key, dict, where="methods."))
    if "like" not in table:
        return table
    where, complete = f"methods.{key}.", [name for name in tables if "like" not in part_of(tables, name, dict)]
    other = part_of(table, "like", str, where=where)
    if other not in complete:
        raise ValueError(f"{where}like: {unknown('method with settings of its own', other, complete)}")
    del table["like"]
    shared = part_of(tables[other], "settings", dict, where=f"methods.{other}.")
    own = part_of(table, "settings", dict, {}, where)
    return {"scale": tables[other].get("scale", {}), **table, "settings": {**shared, **own}}


def _without_episodes(method: Method) -> Method:
    """For as many episodes as the others."""
    return dataclasses.replace(method, scale={key: value for key, value in method.scale.items() if key != "episodes"})


def _with_timesteps(method: Method, timesteps: int) -> Method:
    """For that many timesteps, if it is trained for timesteps at all."""
    changed = {"timesteps": timesteps} if "timesteps" in method.scale else {}
    return dataclasses.replace(method, scale={**method.scale, **changed})


def _sensitivity(data: dict[str, Any], name: str, given: dict[str, int]) -> Sensitivity:
    """A study in a file's table `name`, with the `given` seeds, and no more than the `given` episodes.

    Values are numbers, or tables of settings where others change along with the one that is varied.
    """
    table = part_of(data, name, dict)
    setting, values = part_of(table, "setting", str, where=f"{name}."), part_of(table, "values", dict, where=f"{name}.")
    by_method = {}
    for method in values:
        varied = part_of(values, method, list, where=f"{name}.values.")
        changes = [value if isinstance(value, dict) else {setting: value} for value in varied]
        by_method[method] = {_number(one.get(setting), f"{name}.values.{method}"): one for one in changes}
    variants = part_of(table, "variants", list, [], f"{name}.")
    known = [str(one.get("name")) for one in part_of(data, "variants", list) if isinstance(one, dict)]
    for variant in variants:
        if variant not in known:
            raise ValueError(f"{name}.variants: {unknown('variant', str(variant), known)}")
    own = {key: value for key, value in table.items() if key not in ("setting", "values", "variants")}
    scale = from_table(Scale, own, name)
    episodes = min(scale.episodes, given.get("episodes", scale.episodes))
    scale = dataclasses.replace(scale, seeds=given.get("seeds", scale.seeds), episodes=episodes)
    return Sensitivity(setting, by_method, scale, tuple(variants))


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{where}: {reprlib.repr(value)}: a number is needed, or a table with one for the setting.")
    return value


_STUDY_TABLES = {SENSITIVITY: "sweep", LAMBDA_CURVES: "lambda_curves"}
"""Study -> its table in a file."""
_KEYS = (
    *("title", "env", "engine", "evaluation_episodes", "variants"),
    *("figures", "full", "quick", *_STUDY_TABLES.values(), "methods"),
)
"""The keys of a file."""


def _folder() -> Any:
    return files("steadyrl.runs") / "experiments"
