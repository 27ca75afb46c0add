"""An experiment of the paper as data: which methods, with which settings, in which variants of an environment."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from steadyrl.agents import AGENTS
from steadyrl.naming import unknown


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
    """What of the experiment's scale is different for this method."""


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
    """"training" for the episodes that were learned from, "evaluations" for those played beside."""
    so_far: bool = False
    """Whether it is averaged over all episodes since the start of training."""


@dataclass(frozen=True)
class Sweep:
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
    """Where episodes happen; "auto" unless the file says otherwise."""
    variants: tuple[Variant, ...]
    methods: tuple[Method, ...]
    scale: Scale
    sweep: Sweep | None
    evaluation_episodes: int
    """How many episodes an evaluation plays."""
    figures: dict[str, tuple[Row, ...]]
    """The figures' names and rows."""
    not_quick: tuple[Method, ...] = ()
    """Methods that the quick scale leaves out, at that scale."""

    def scale_of(self, method: Method) -> Scale:
        """The scale that a method is trained at."""
        return dataclasses.replace(self.scale, **method.scale)

    def by_unit(self) -> dict[str, Experiment]:
        """With the methods alone that are trained for "episodes" or for "timesteps", as far as there are any."""
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

    def swept(self) -> Experiment | None:
        """The sweep as an experiment: a method for each value, named METHOD=VALUE; None if there is none."""
        if self.sweep is None:
            return None
        methods = tuple(
            dataclasses.replace(
                method,
                name=f"{method.name}={value:g}",
                title=f"{method.title} {value:g}",
                source=f"{self.sweep.setting} {value:g}; the rest as {method.title} in the main experiment",
                settings={**method.settings, **changed},
                scale={},
            )
            for method in self.methods
            for value, changed in self.sweep.values.get(method.name, {}).items()
        )
        return dataclasses.replace(self, methods=methods, scale=self.sweep.scale, sweep=None) if methods else None


def names() -> list[str]:
    """The experiments there are."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(
    name: str,
    *,
    quick: bool = False,
    seeds: int | None = None,
    episodes: int | None = None,
    timesteps: int | None = None,
) -> Experiment:
    """The experiment by that name, at full or quick scale; what is given besides overrides the file's.

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
        sweep=None if quick or "sweep" not in data else _sweep(dict(data["sweep"])),
        evaluation_episodes=data["evaluation_episodes"],
        figures={figure: tuple(Row(**row) for row in rows) for figure, rows in data["figures"].items()},
        not_quick=tuple(method for method in methods if quick and not method.quick),
    )


def _sweep(data: dict[str, Any]) -> Sweep:
    """Values are numbers, or tables of settings where others have to move along with the one that is swept."""
    setting, values = data.pop("setting"), data.pop("values")
    tables = {
        method: [value if isinstance(value, dict) else {setting: value} for value in given]
        for method, given in values.items()
    }
    return Sweep(setting, {m: {table[setting]: table for table in given} for m, given in tables.items()}, Scale(**data))


def _folder() -> Any:
    return files("steadyrl") / "experiments"
