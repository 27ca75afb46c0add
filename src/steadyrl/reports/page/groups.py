"""Grouping of runs that differ only in their seeds, and the variant and method names of each group."""

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
from steadyrl.evaluation.agent_looks import agent_title
from steadyrl.reports.page import formatting
from steadyrl.reports.page.experiments import experiment_method, experiment_variant
from steadyrl.reports.page.runs_found import FoundRun, Notes

Settings = dict[tuple[str, str], Any]
"""(section of the config, name) -> value: everything that can differ between groups."""
_SETTING_TITLES = {"risk_aversion": "lambda"}
"""Setting -> its name in the names of methods, where that is another one."""


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds."""

    variant: str
    """The name of the environment variant, used as the title of panels."""
    method: str
    """The name of the method as in figures; it has the same colour throughout the report."""
    runs: tuple[FoundRun, ...]

    @property
    def agent(self) -> str:
        """The name of the agent."""
        return str(self.runs[0].config["agent"])

    @property
    def settings(self) -> Settings:
        """The settings that its runs share."""
        return settings_of(self.runs[0].config)


def settings_of(config: dict[str, Any]) -> Settings:
    """Everything in a config that affects the result, except the seed and the package versions."""
    env, budget = config["env"], config.get("budget") or {}
    return {
        ("agent", "agent"): config["agent"],
        **{("agent", name): value for name, value in config["settings"].items()},
        ("env", "env"): env.get("id"),
        **{("env", name): value for name, value in (env.get("options") or {}).items()},
        **{("budget", f"budget of {unit}"): value for unit, value in budget.items()},
        ("engine", "engine"): config.get("engine"),
    }


def differing(settings: Sequence[Settings]) -> list[tuple[str, str]]:
    """The keys whose values are not equal in all `settings`, in order of first appearance."""
    keys = list(dict.fromkeys(key for one in settings for key in one))
    return [key for key in keys if len({_frozen(s[key]) if key in s else None for s in settings}) > 1]


def varied(settings: Sequence[Settings]) -> list[tuple[str, str]]:
    """The keys with two or more values among the `settings` that have them; what an agent lacks does not count."""
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({_frozen(one[key]) for one in settings if key in one}) > 1]


def group_runs(runs: Iterable[FoundRun], root: Path, notes: Notes) -> list[Group]:
    """The groups, sorted by variant and then by method in the order of `AGENTS`."""
    members = _split_by_settings(runs, notes)
    folders = [_folder(group, root) for group in members]
    names = _names(members, folders)
    groups = [Group(*name, tuple(group)) for name, group in zip(names, members, strict=True)]
    rank = {name: index for index, name in enumerate(AGENTS)}
    return sorted(groups, key=lambda g: (_natural(g.variant), rank.get(g.agent, len(rank)), _natural(g.method)))


def _split_by_settings(runs: Iterable[FoundRun], notes: Notes) -> list[list[FoundRun]]:
    """Runs with equal settings, sorted by seed; split by folder if a seed would occur twice."""
    by_settings: dict[str, list[FoundRun]] = defaultdict(list)
    for run in runs:
        by_settings[_frozen(sorted(settings_of(run.config).items()))].append(run)
    groups = []
    for group in by_settings.values():
        by_folder: dict[Path, list[FoundRun]] = defaultdict(list)
        for run in group:
            by_folder[run.folder.parent].append(run)
        repeated_seeds = len({run.seed for run in group}) < len(group)
        groups += list(by_folder.values()) if repeated_seeds else [group]
    return [_drop_duplicate_seeds(group, notes) for group in groups]


def _drop_duplicate_seeds(group: list[FoundRun], notes: Notes) -> list[FoundRun]:
    by_seed: dict[int, FoundRun] = {}
    for run in group:
        if run is not by_seed.setdefault(run.seed, run):
            notes["same settings and seed as another run in the same folder: skipped"].append(run.name)
    return [by_seed[seed] for seed in sorted(by_seed)]


def _folder(group: list[FoundRun], root: Path) -> PurePosixPath:
    """The folder that contains the runs of a group, relative to `root`."""
    if group[0].folder == root:
        return PurePosixPath()
    common = os.path.commonpath([run.folder.parent for run in group])
    return PurePosixPath(Path(common).relative_to(root).as_posix())


def _names(groups: list[list[FoundRun]], folders: list[PurePosixPath]) -> list[tuple[str, str]]:
    """(variant, method) of each group, from the path of its folder or, in a shared folder, from differing settings."""
    all_settings = [settings_of(group[0].config) for group in groups]
    groups_in = Counter(folders)
    parents, methods = [], []
    for group, settings, folder in zip(groups, all_settings, folders, strict=True):
        has_own_folder = folder.name and groups_in[folder] == 1
        parents.append(folder.parent if has_own_folder else folder)
        own_name = _own_name(group[0], folder.name) if has_own_folder else ""
        methods.append(own_name or _method(settings, all_settings))
    shown = [
        parent.with_name(experiment_variant(group[0], parent.name)) if parent.name else parent
        for group, parent in zip(groups, parents, strict=True)
    ]
    variants = [_variant(s, parent, all_settings, shown) for s, parent in zip(all_settings, shown, strict=True)]
    names = list(zip(variants, methods, strict=True))
    occurrences = Counter(names)
    return [
        (variant, method if occurrences[variant, method] == 1 else f"{method} ({group[0].name})")
        for (variant, method), group in zip(names, groups, strict=True)
    ]


def _own_name(run: FoundRun, folder: str) -> str:
    """The title of a method of an experiment, or the name that a user gave to its folder; empty for one of a sweep."""
    of_experiment = experiment_method(run)
    agent = run.config["agent"]
    named_by_us = folder == agent or folder.startswith(f"{agent},")
    return of_experiment.title if of_experiment else "" if named_by_us else folder


def _method(settings: Settings, all_settings: list[Settings]) -> str:
    """The agent and its settings that differ from those of the same agent in the same environment.

    Budget and engine are included only if the agent's settings do not distinguish all of these groups.
    """
    same = ("agent", "agent"), ("env", "env")
    peers = [other for other in all_settings if all(other[key] == settings[key] for key in same)]
    keys = [key for key in differing(peers) if key[0] != "env"]
    agent_keys = [key for key in keys if key[0] == "agent"]
    if _number_of_names(peers, agent_keys) == _number_of_names(peers, keys):
        keys = agent_keys
    return ", ".join([agent_title(str(settings["agent", "agent"])), *_describe(settings, keys)])


def _number_of_names(all_settings: list[Settings], keys: list[tuple[str, str]]) -> int:
    return len({_frozen(_describe(settings, keys)) for settings in all_settings})


def _variant(
    settings: Settings, parent: PurePosixPath, all_settings: list[Settings], parents: list[PurePosixPath]
) -> str:
    """The parent folder if all groups in it share an environment, otherwise the environment and its options."""
    environments = [
        {key: value for key, value in other.items() if key[0] == "env"}
        for other, other_parent in zip(all_settings, parents, strict=True)
        if other_parent == parent
    ]
    if parent.name and not differing(environments):
        return str(parent)
    env_id = settings["env", "env"]
    options = differing([env for env in environments if env["env", "env"] == env_id])
    name = ", ".join([str(env_id).rsplit("/", 1)[-1], *_describe(settings, options)])
    return f"{parent}: {name}" if parent.name else name


def _describe(settings: Settings, keys: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{_SETTING_TITLES.get(key[1], key[1])} {formatting.setting(settings[key])}" for key in keys if key in settings
    ]


def _frozen(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _natural(text: str) -> list[tuple[float, str]]:
    """Sort key that orders numbers by value: goal-20 before goal-100, and 0.25 before 0.5."""
    parts = re.split(r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return [(float(part.replace(",", "")), "") if index % 2 else (0.0, part) for index, part in enumerate(parts)]
