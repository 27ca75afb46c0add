"""A sweep from a TOML file.

envs = ["CartPole-v1", "steadyrl/GuardedMaze-v0"]
seeds = 10                         # 0 to 9; or a list
episodes = 20_000                  # or timesteps

[agents.mg]                        # settings of an agent; a list is several values
risk_aversion = [0.3, 0.6, 1.2]
[agents.reinforce]

[env_settings]                     # options of the environments; a list is several values
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent, agent_class
from steadyrl.agents.settings import unknown_setting
from steadyrl.base.names import unknown
from steadyrl.base.settings import is_list, types_of
from steadyrl.runs.sweep import MAX_BUDGET, Choices, Sweep, budget_of, is_whole, repeated, seeds_of, setting_types
from steadyrl.runs.toml_file import read_toml


def read_sweep(path: Path) -> Sweep:
    """The sweep that a file describes."""
    data = read_toml(path)
    try:
        return _sweep_of(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _sweep_of(data: dict[str, Any]) -> Sweep:
    for key, value in data.items():
        if key not in _KEYS:
            raise ValueError(unknown("key", key, _KEYS))
        fits, needed = _KEYS[key]
        if not fits(value):
            raise ValueError(f"{key}: {needed} is needed.")
    agents = data.get("agents", {})
    names = [agent_class(name).name for name in agents]
    if twice := repeated(names):
        raise ValueError(f"agents: {twice[0]} is given twice: name each once.")
    tables = [{}] * len(names) if isinstance(agents, list) else agents.values()
    sweep = Sweep(
        envs=tuple(data.get("envs", ())),
        agents={name: _values(AGENTS[name], table) for name, table in zip(names, tables, strict=True)},
        seeds=seeds_of(data.get("seeds", 1)),
        budget=budget_of(data.get("episodes"), data.get("timesteps")),
        loggers=tuple(data.get("loggers", ())),
        env_settings={k: v if isinstance(v, list) else [v] for k, v in data.get("env_settings", {}).items()},
        engine=data.get("engine", "auto"),
    )
    for name, choices in sweep.agents.items():
        _check_settings(AGENTS[name], choices)
    if "env" in sweep.env_settings:
        raise ValueError("env_settings: env cannot be the name of an option. Name the environments in envs.")
    return sweep


def _check_settings(agent: type[Agent], choices: Choices) -> None:
    """An error for an unknown setting or a value of another type; which belong together is found by the agent."""
    classes = agent.settings_classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # The agents themselves will give it.
        for name, values in choices.items():
            knowing = next((kind for kind in classes if name in types_of((kind,))), None)
            if knowing is None:
                known, hints = set(setting_types(agent)), agent.Settings.hints_for_other_names()
                raise ValueError(f"agents.{agent.name}: {unknown_setting(name, known, hints)}")
            for value in values:
                try:
                    knowing.of({name: value})
                except ValueError as error:
                    raise ValueError(f"agents.{agent.name}.{error}") from None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())


def _is_budget(value: Any) -> bool:
    return is_whole(value) and 1 <= value <= MAX_BUDGET


_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "envs": (_is_names, 'a list of names, such as ["CartPole-v1"],'),
    "agents": (lambda value: _is_names(value) or _is_tables(value), "a list of names, or a table [agents.NAME] each,"),
    "seeds": (lambda value: is_whole(value) or isinstance(value, list), "a whole number or a list of them"),
    "episodes": (_is_budget, f"a whole number from 1 to {MAX_BUDGET:,}"),
    "timesteps": (_is_budget, f"a whole number from 1 to {MAX_BUDGET:,}"),
    "engine": (lambda value: isinstance(value, str), "a name"),
    "loggers": (_is_names, 'a list of names, such as ["tensorboard"],'),
    "env_settings": (lambda value: isinstance(value, dict), "a table [env_settings]"),
}
"""The keys of a file, how their values are checked, and what is needed."""


def _values(agent: type[Agent], table: Mapping[str, Any]) -> Choices:
    kinds = setting_types(agent)
    choices = {}
    for name, value in table.items():
        several = isinstance(value, list) and not (
            is_list(kinds.get(name)) and not any(isinstance(v, list) for v in value)
        )
        choices[name] = list(value) if several else [value]
    return choices
