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


@dataclass(frozen=True)
class Variant:
    """The environment with some options."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """What to train, and for how long."""

    name: str
    title: str
    env: str
    variants: tuple[Variant, ...]
    methods: tuple[Method, ...]
    seeds: int
    episodes: int
    episodes_per_record: int

    def only(self, names: Sequence[str]) -> Experiment:
        """With these methods alone; a name is a method's or that of its agent."""
        known = {name for method in self.methods for name in (method.name, method.agent)}
        for name in names:
            if name not in known:
                raise ValueError(unknown("method", name, known))
        chosen = tuple(m for m in self.methods if m.name in names or m.agent in names)
        return dataclasses.replace(self, methods=chosen)


def names() -> list[str]:
    """The experiments there are."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(name: str, *, quick: bool = False, seeds: int | None = None, episodes: int | None = None) -> Experiment:
    """The experiment by that name, at full or quick scale; `seeds` and `episodes` override the file's."""
    if name not in names():
        raise ValueError(unknown("experiment", name, names()))
    data = tomllib.loads((_folder() / f"{name}.toml").read_text())
    for option, given in (("seeds", seeds), ("episodes", episodes)):
        if given is not None and given < 1:
            raise ValueError(f"--{option} {given}: at least 1 is needed.")
    scale = data["quick" if quick else "full"]
    experiment = Experiment(
        name=name,
        title=data["title"],
        env=data["env"],
        variants=tuple(Variant(**variant) for variant in data["variants"]),
        methods=tuple(Method(name=key, **method) for key, method in data["methods"].items()),
        seeds=seeds if seeds is not None else scale["seeds"],
        episodes=episodes if episodes is not None else scale["episodes"],
        episodes_per_record=scale["episodes_per_record"],
    )
    for method in experiment.methods:  # An unknown agent or setting is found before anything is trained.
        AGENTS[method.agent].Settings.of(method.settings)
    return experiment


def _folder() -> Any:
    return files("steadyrl") / "experiments"
