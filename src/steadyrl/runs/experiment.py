"""An experiment of the paper as data: which methods, with which settings, in which variants of an environment."""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS
from steadyrl.base.names import unknown
from steadyrl.runs.job import Job, command_line
from steadyrl.training.run import Plan


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
    evaluation_episodes: int
    """How many episodes an evaluation plays."""
    figures: dict[str, tuple[Row, ...]]
    """The figures' names and rows."""
    not_quick: tuple[Method, ...] = ()
    """Methods that the quick scale omits, at that scale."""

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
                seeds=range(scale.seeds),
                folder=out / variant.name.replace(" ", "-") / method.name,
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

    def sensitivity_experiment(self) -> Experiment | None:
        """The sensitivity study as an experiment: a method METHOD=VALUE for each value; None if there is none."""
        if self.sensitivity is None:
            return None
        methods = tuple(
            dataclasses.replace(
                method,
                name=f"{method.name}={value:g}",
                title=f"{method.title} {value:g}",
                source=f"{self.sensitivity.setting} {value:g}; the rest as {method.title} in the main experiment",
                settings={**method.settings, **changed},
                scale={},
            )
            for method in self.methods
            for value, changed in self.sensitivity.values.get(method.name, {}).items()
        )
        if not methods:
            return None
        return dataclasses.replace(self, methods=methods, scale=self.sensitivity.scale, sensitivity=None)


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

    `episodes` are for every method; `timesteps` for those that are trained for steps.
    """
    if name not in names():
        raise ValueError(unknown("experiment", name, names()))
    data = tomllib.loads((_folder() / f"{name}.toml").read_text())
    if episodes is not None and timesteps is not None:
        raise ValueError("give --episodes or --timesteps, not both.")
    for option, value in (("seeds", seeds), ("episodes", episodes), ("timesteps", timesteps)):
        if value is not None and value < 1:
            raise ValueError(f"--{option} {value}: at least 1 is needed.")
    given = {key: value for key, value in (("seeds", seeds), ("episodes", episodes)) if value is not None}
    methods = tuple(Method(name=key, **method) for key, method in data["methods"].items())
    for method in methods:  # An unknown agent or setting is found before anything is trained.
        AGENTS[method.agent].settings_of(method.settings)
        if "timesteps" in method.scale and (timesteps or episodes):
            method.scale["timesteps"] = timesteps or 0
    methods_here = tuple(method for method in methods if method.quick or not quick)
    if timesteps is not None and not any("timesteps" in method.scale for method in methods_here):
        raise ValueError(f"--timesteps: no method of {name}{' --quick' * quick} is trained for steps. Use --episodes.")
    return Experiment(
        name=name,
        title=data["title"],
        env=data["env"],
        engine=data.get("engine", "auto"),
        variants=tuple(Variant(**variant) for variant in data["variants"]),
        methods=methods_here,
        scale=Scale(**{**data["quick" if quick else "full"], **given}),
        sensitivity=None if quick or "sweep" not in data else _sensitivity(dict(data["sweep"])),
        evaluation_episodes=data["evaluation_episodes"],
        figures={figure: tuple(Row(**row) for row in rows) for figure, rows in data["figures"].items()},
        not_quick=tuple(method for method in methods if quick and not method.quick),
    )


def _sensitivity(data: dict[str, Any]) -> Sensitivity:
    """Values are numbers, or tables of settings where others change along with the one that is varied."""
    setting, values = data.pop("setting"), data.pop("values")
    tables = {
        method: [value if isinstance(value, dict) else {setting: value} for value in given]
        for method, given in values.items()
    }
    return Sensitivity(
        setting, {m: {table[setting]: table for table in given} for m, given in tables.items()}, Scale(**data)
    )


def _folder() -> Any:
    return files("steadyrl.runs") / "experiments"
