"""Runs that differ in their seeds alone, as groups; and the variant and method that each group is called by."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from steadyrl.agents import AGENTS
from steadyrl.report import numerals
from steadyrl.report.runs_found import FoundRun, Notes

Settings = dict[tuple[str, str], Any]
"""(part of the config, name) -> value: all that can differ between groups."""


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone."""

    variant: str
    """The environment, as panels are titled."""
    method: str
    """What learned there; it has one colour on the page."""
    runs: tuple[FoundRun, ...]

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.runs[0].config["agent"])

    @property
    def settings(self) -> Settings:
        """What its runs share."""
        return settings_of(self.runs[0].config)


def settings_of(config: dict[str, Any]) -> Settings:
    """All of a config that a result depends on, but the seed and the versions."""
    env, budget = config["env"], config.get("budget") or {}
    return {
        ("agent", "agent"): config["agent"],
        **{("agent", name): value for name, value in config["settings"].items()},
        ("env", "env"): env.get("id"),
        **{("env", name): value for name, value in (env.get("options") or {}).items()},
        **{("budget", f"budget of {unit}"): value for unit, value in budget.items()},
        ("engine", "engine"): config.get("engine"),
    }


def differing(many: Sequence[Settings]) -> list[tuple[str, str]]:
    """The settings that are not the same in all, in the order in which they are first met."""
    keys = list(dict.fromkeys(key for settings in many for key in settings))
    return [key for key in keys if len({_frozen(s[key]) if key in s else None for s in many}) > 1]


def group_runs(runs: Iterable[FoundRun], root: Path, notes: Notes) -> list[Group]:
    """The groups, by variant and then by method in the order of `AGENTS`."""
    alike = _alike(runs, notes)
    folders = [_folder(group, root) for group in alike]
    titles = _titles(alike, folders)
    groups = [Group(*title, tuple(group)) for title, group in zip(titles, alike, strict=True)]
    rank = {name: index for index, name in enumerate(AGENTS)}
    return sorted(groups, key=lambda g: (_natural(g.variant), rank.get(g.agent, len(rank)), _natural(g.method)))


def _alike(runs: Iterable[FoundRun], notes: Notes) -> list[list[FoundRun]]:
    """Runs with the same settings, by seed; those of different folders apart if a seed would come twice."""
    by_settings: dict[str, list[FoundRun]] = defaultdict(list)
    for run in runs:
        by_settings[_frozen(sorted(settings_of(run.config).items()))].append(run)
    groups = []
    for alike in by_settings.values():
        by_folder: dict[Path, list[FoundRun]] = defaultdict(list)
        for run in alike:
            by_folder[run.folder.parent].append(run)
        repeats = len({run.seed for run in alike}) < len(alike)
        groups += list(by_folder.values()) if repeats else [alike]
    return [_one_of_each_seed(group, notes) for group in groups]


def _one_of_each_seed(group: list[FoundRun], notes: Notes) -> list[FoundRun]:
    by_seed: dict[int, FoundRun] = {}
    for run in group:
        if run is not by_seed.setdefault(run.seed, run):
            notes["the same settings and seed as another run beside it: left out"].append(run.name)
    return [by_seed[seed] for seed in sorted(by_seed)]


def _folder(group: list[FoundRun], root: Path) -> PurePosixPath:
    """The folder that holds a group's runs, from `root`."""
    if group[0].folder == root:
        return PurePosixPath()
    common = os.path.commonpath([run.folder.parent for run in group])
    return PurePosixPath(Path(common).relative_to(root).as_posix())


def _titles(alike: list[list[FoundRun]], folders: list[PurePosixPath]) -> list[tuple[str, str]]:
    """(variant, method) of each group: its folder's path, or where it shares that with others, what is different."""
    settings = [settings_of(group[0].config) for group in alike]
    sharing = Counter(folders)
    places, methods = [], []
    for own, folder in zip(settings, folders, strict=True):
        has_folder = folder.name and sharing[folder] == 1
        places.append(folder.parent if has_folder else folder)
        methods.append(folder.name if has_folder else _method(own, settings))
    variants = [_variant(own, place, settings, places) for own, place in zip(settings, places, strict=True)]
    titles = list(zip(variants, methods, strict=True))
    times = Counter(titles)
    return [
        (variant, method if times[variant, method] == 1 else f"{method} ({group[0].name})")
        for (variant, method), group in zip(titles, alike, strict=True)
    ]


def _method(own: Settings, everyone: list[Settings]) -> str:
    """The agent, and what tells it from others like it in the same world: its settings, or budget and engine too."""
    world = ("agent", "agent"), ("env", "env")
    kind = [other for other in everyone if all(other[key] == own[key] for key in world)]
    keys = [key for key in differing(kind) if key[0] != "env"]
    of_agent = [key for key in keys if key[0] == "agent"]
    if len({_frozen(_told(other, of_agent)) for other in kind}) == len({_frozen(_told(other, keys)) for other in kind}):
        keys = of_agent
    return ", ".join([str(own["agent", "agent"]), *_told(own, keys)])


def _variant(own: Settings, place: PurePosixPath, everyone: list[Settings], places: list[PurePosixPath]) -> str:
    """The folder, if all in it share an environment; else the environment and what tells it from the others."""
    worlds = [
        {key: value for key, value in settings.items() if key[0] == "env"}
        for settings, other in zip(everyone, places, strict=True)
        if other == place
    ]
    if place.name and not differing(worlds):
        return str(place)
    name = own["env", "env"]
    options = differing([world for world in worlds if world["env", "env"] == name])
    told = ", ".join([str(name).rsplit("/", 1)[-1], *_told(own, options)])
    return f"{place}: {told}" if place.name else told


def _told(own: Settings, keys: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{key[1]} {numerals.setting(own[key])}" for key in keys if key in own]


def _frozen(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _natural(text: str) -> list[tuple[float, str]]:
    """Sorts goal-20 before goal-100, and 0.25 before 0.5."""
    parts = re.split(r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return [(float(part.replace(",", "")), "") if index % 2 else (0.0, part) for index, part in enumerate(parts)]
