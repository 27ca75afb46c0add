"""A sweep as data: environments x agents x settings x seeds, from a TOML file or a command, and the jobs it expands to.

envs = ["CartPole-v1", "steadyrl/GuardedMaze-v0"]
seeds = 10                         # 0 to 9; or a list
episodes = 20_000                  # or timesteps

[agents.mg]                        # settings of an agent; a list is several values
risk_aversion = [0.3, 0.6, 1.2]
[agents.reinforce]

[env_settings]                     # options of the environments; a list is several values
"""

from __future__ import annotations

import hashlib
import itertools
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent, agent_class
from steadyrl.agents.settings import unknown_setting
from steadyrl.base.names import unknown
from steadyrl.base.settings import canonical, is_list, parsed, types_of
from steadyrl.runs.job import Job, command_line
from steadyrl.training.checkpoint_timer import SECONDS
from steadyrl.training.run import Plan

EPISODES = 20_000
"""Training episodes by default."""
SWEEP_EPISODES_PER_RECORD = 10
"""Of methods that record every episode: enough for a dispersion."""
MAX_NAME = 100
"""Characters in the name of a folder."""

Choices = dict[str, list[Any]]
"""Name -> the values to try."""


@dataclass(frozen=True)
class Sweep:
    """The values that are combined."""

    envs: tuple[str, ...]
    agents: dict[str, Choices]
    """Agent -> its settings."""
    seeds: tuple[int, ...] = (0,)
    budget: dict[str, int] = field(default_factory=lambda: {"episodes": EPISODES})
    """How many "episodes" or "timesteps" for each run."""
    env_settings: Choices = field(default_factory=dict)
    engine: str = "auto"
    loggers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
                raise ValueError(f"seeds: {seed!r}: a seed is a whole number from 0 to {2**32 - 1}.")
        for what, given in (("envs", self.envs), ("agents", self.agents), ("seeds", self.seeds)):
            if not given:
                raise ValueError(f"{what}: name at least one.")
            if len(set(given)) < len(given):
                raise ValueError(f"{what} {', '.join(map(str, given))}: name each once.")
        for choices in (self.env_settings, *self.agents.values()):
            for name, values in choices.items():
                if not values or any(value in values[:k] for k, value in enumerate(values)):
                    raise ValueError(f"{name}: give it at least one value, and each once.")

    def cells(self, out: Path, checkpoint_seconds: float = SECONDS) -> list[Job]:
        """A job for each combination, with all seeds; folders are named by what is in them."""
        plan = Plan(
            self.budget,
            episodes_per_record=SWEEP_EPISODES_PER_RECORD,
            checkpoint_seconds=checkpoint_seconds,
            command=command_line(),
        )
        cells = []
        for env, options, (agent, choices) in itertools.product(
            self.envs, combined(self.env_settings), self.agents.items()
        ):
            for settings in combined(choices):
                place = folder_name(short_name(env), options, _varied(self.env_settings))
                method = folder_name(agent, settings, _varied(choices))
                cell = Job.cell(
                    env=env,
                    env_options=options,
                    agent=agent,
                    settings=settings,
                    seeds=self.seeds,
                    folder=out / place / method,
                    title=f"{place} {method}",
                    plan=plan,
                    engine=self.engine,
                    loggers=self.loggers,
                )
                cells.append(cell)
        if len({cell.folders for cell in cells}) < len(cells):
            raise ValueError("envs: two of them would share a folder. Make a sweep of each, with its own --out.")
        return cells


def _varied(choices: Choices) -> list[str]:
    return [name for name, values in choices.items() if len(values) > 1]


def combined(choices: Choices) -> Iterator[dict[str, Any]]:
    """Every combination of the values."""
    return (dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


def short_name(env: str) -> str:
    """What an environment is called as part of a folder's name."""
    return env.rsplit("/", 1)[-1].replace(":", "-")


def folder_name(what: str, settings: Mapping[str, Any], varied: Collection[str] = ()) -> str:
    """`what,name=value,...` as the name of a folder; if that is too long, the `varied` ones and a digest of all."""
    name = _listed(what, settings)
    plain = re.sub(r"[^\w.,=+-]", "-", name)
    if plain == name and len(name) <= MAX_NAME:
        return name
    short = re.sub(r"[^\w.,=+-]", "-", _listed(what, {key: settings[key] for key in settings if key in varied}))
    return f"{short[: MAX_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _listed(what: str, settings: Mapping[str, Any]) -> str:
    return ",".join([what, *(f"{key}={_text(value)}" for key, value in settings.items())])


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_sweep(path: Path) -> Sweep:
    """The sweep that a file describes."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from None
    for key, value in data.items():
        if key not in _KEYS:
            raise ValueError(f"{path}: {unknown('key', key, _KEYS)}")
        fits, needed = _KEYS[key]
        if not fits(value):
            raise ValueError(f"{path}: {key}: {needed} is needed.")
    agents = data.get("agents", {})
    tables = {name: {} for name in agents} if isinstance(agents, list) else agents
    return Sweep(
        envs=tuple(data.get("envs", ())),
        agents={agent_class(name).name: _values(agent_class(name), table) for name, table in tables.items()},
        seeds=seeds_of(data.get("seeds", 1)),
        budget=budget_of(data.get("episodes"), data.get("timesteps")),
        loggers=tuple(data.get("loggers", ())),
        env_settings={k: v if isinstance(v, list) else [v] for k, v in data.get("env_settings", {}).items()},
        engine=data.get("engine", "auto"),
    )


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "envs": (_is_names, 'a list of names, such as ["CartPole-v1"],'),
    "agents": (lambda value: _is_names(value) or _is_tables(value), "a list of names, or a table [agents.NAME] each,"),
    "seeds": (lambda value: _is_whole(value) or isinstance(value, list), "a whole number or a list of them"),
    "episodes": (_is_whole, "a whole number"),
    "timesteps": (_is_whole, "a whole number"),
    "engine": (lambda value: isinstance(value, str), "a name"),
    "loggers": (_is_names, 'a list of names, such as ["tensorboard"],'),
    "env_settings": (lambda value: isinstance(value, dict), "a table [env_settings]"),
}
"""The keys of a file, how their values are checked, and what is needed."""


def _values(agent: type[Agent], table: Mapping[str, Any]) -> Choices:
    kinds = _kinds(agent)
    choices = {}
    for name, value in table.items():
        several = isinstance(value, list) and not (
            is_list(kinds.get(name)) and not any(isinstance(v, list) for v in value)
        )
        choices[name] = list(value) if several else [value]
    return choices


def seeds_of(given: Any) -> tuple[int, ...]:
    """The seeds of a number, which are the first ones, or of a list."""
    if isinstance(given, list):
        return tuple(given)
    if given < 1:
        raise ValueError(f"seeds {given}: at least 1 is needed.")
    return tuple(range(given))


def budget_of(episodes: int | None, timesteps: int | None) -> dict[str, int]:
    """How long to train, in one of the two."""
    if episodes is not None and timesteps is not None:
        raise ValueError("give episodes or timesteps, not both.")
    return (
        {"timesteps": timesteps} if timesteps is not None else {"episodes": EPISODES if episodes is None else episodes}
    )


def choices_of_text(agents: Iterable[str], pairs: Mapping[str, str]) -> dict[str, Choices]:
    """Settings as a command gives them, name=value,value: for every agent that knows the name."""
    kinds = {agent: _kinds(AGENTS[agent]) for agent in agents}
    every = set().union(*kinds.values())
    for name in pairs:
        if name not in every:
            hints = {
                other: right
                for agent in kinds
                for other, right in AGENTS[agent].Settings.hints_for_other_names().items()
            }
            raise ValueError(unknown_setting(name, every, hints))
    choices: dict[str, Choices] = {}
    for agent, known in kinds.items():
        for name, text in pairs.items():
            if name in known:
                values = [parsed(name, value, known[name]) for value in split(text, is_list(known[name]))]
                own = [canonical({name: value}, AGENTS[agent].settings_classes()) for value in values]
                choices.setdefault(agent, {})[next(iter(own[0]))] = [next(iter(one.values())) for one in own]
    return {agent: choices.get(agent, {}) for agent in kinds}


def split(text: str, of_lists: bool = False) -> list[str]:
    """At commas outside of brackets; where each value is a list, one without brackets is a single one."""
    if of_lists and not text.startswith(("[", "(")):
        return [text]
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _kinds(agent: type[Agent]) -> dict[str, Any]:
    """The type of every setting of an agent, with any choice."""
    return types_of(agent.settings_classes())
