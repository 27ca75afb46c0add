"""A sweep as data: environments x agents x settings x seeds, from a TOML file or a command, and the runs that it means.

envs = ["CartPole-v1", "steadyrl/GuardedMaze-v0"]
seeds = 10                         # 0 to 9; or a list
episodes = 20_000                  # or timesteps

[agents.mg]                        # settings of an agent; a list is several values
risk_aversion = [0.3, 0.6, 1.2]
[agents.reinforce]

[env_settings]                     # options of the environments; a list is several values
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent
from steadyrl.checkpoints import SECONDS
from steadyrl.job import Job
from steadyrl.naming import choose, unknown
from steadyrl.settings import is_list, parsed

EPISODES = 20_000
"""To learn from, where nothing is said."""
LONGEST_NAME = 100
"""Of a folder; a longer one is cut and ends in a digest."""

Choices = dict[str, list[Any]]
"""Name -> the values to try."""


@dataclass(frozen=True)
class Sweep:
    """What is combined with what."""

    envs: tuple[str, ...]
    agents: dict[str, Choices]
    """Agent -> its settings."""
    seeds: tuple[int, ...] = (0,)
    budget: dict[str, int] = field(default_factory=lambda: {"episodes": EPISODES})
    """How many "episodes" or "timesteps" for each run."""
    env_settings: Choices = field(default_factory=dict)
    engine: str = "auto"

    def __post_init__(self) -> None:
        for what, given in (("envs", self.envs), ("agents", self.agents), ("seeds", self.seeds)):
            if not given:
                raise ValueError(f"{what}: name at least one.")
            if len(set(given)) < len(given):
                raise ValueError(f"{what} {', '.join(map(str, given))}: name each once.")
        for choices in (self.env_settings, *self.agents.values()):
            for name, values in choices.items():
                if not values or any(value in values[:k] for k, value in enumerate(values)):
                    raise ValueError(f"{name}: give it at least one value, and each once.")

    def cells(self, out: Path, checkpoint_seconds: float = SECONDS, command: str | None = None) -> list[Job]:
        """A job for each combination, with all seeds; folders are named by what is in them."""
        cells = []
        for env, options, (agent, choices) in itertools.product(
            self.envs, combined(self.env_settings), self.agents.items()
        ):
            for settings in combined(choices):
                place, method = folder_name(short_name(env), options), folder_name(agent, settings)
                cell = Job(
                    env=env,
                    env_options=options,
                    agent=agent,
                    settings=settings,
                    seeds=self.seeds,
                    folders=tuple(out / place / method / f"seed{seed}" for seed in self.seeds),
                    budget=self.budget,
                    title=f"{place} {method}",
                    engine=self.engine,
                    checkpoint_seconds=checkpoint_seconds,
                    command=command,
                )
                cells.append(cell)
        if len({cell.folders for cell in cells}) < len(cells):
            raise ValueError("envs: two of them would share a folder. Make a sweep of each, with its own --out.")
        return cells


def combined(choices: Choices) -> Iterator[dict[str, Any]]:
    """Every combination of the values."""
    return (dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


def short_name(env: str) -> str:
    """What an environment is called as part of a folder's name."""
    return env.rsplit("/", 1)[-1].replace(":", "-")


def folder_name(what: str, settings: Mapping[str, Any]) -> str:
    """`what,name=value,...` as the name of a folder."""
    name = ",".join([what, *(f"{key}={_text(value)}" for key, value in settings.items())])
    plain = re.sub(r"[^\w.,=+-]", "-", name)
    if plain == name and len(name) <= LONGEST_NAME:
        return name
    return f"{plain[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_sweep(path: Path) -> Sweep:
    """The sweep that a file describes."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from None
    known = ("envs", "agents", "seeds", "episodes", "timesteps", "engine", "env_settings")
    for key in data:
        if key not in known:
            raise ValueError(f"{path}: {unknown('key', key, known)}")
    if not isinstance(data.get("envs", []), list):
        raise ValueError(f'{path}: envs: a list is needed, such as ["CartPole-v1"].')
    agents = data.get("agents", {})
    tables = {name: {} for name in agents} if isinstance(agents, list) else agents
    return Sweep(
        envs=tuple(data.get("envs", ())),
        agents={agent_name(name): _values(agent_name(name), table) for name, table in tables.items()},
        seeds=seeds_of(data.get("seeds", 1)),
        budget=budget_of(data.get("episodes"), data.get("timesteps")),
        env_settings={k: v if isinstance(v, list) else [v] for k, v in data.get("env_settings", {}).items()},
        engine=data.get("engine", "auto"),
    )


def _values(agent: str, table: Mapping[str, Any]) -> Choices:
    kinds = _kinds(AGENTS[agent])
    choices = {}
    for name, value in table.items():
        several = isinstance(value, list) and not (
            is_list(kinds.get(name)) and not any(isinstance(v, list) for v in value)
        )
        choices[name] = list(value) if several else [value]
    return choices


def agent_name(name: str) -> str:
    """The name that an agent has here, from its own or that of its class, in whatever capitals."""
    by_class = {kind.__name__: kind for kind in AGENTS.values()}
    known = {**{kind_name: kind for kind_name, kind in by_class.items() if kind_name not in AGENTS}, **AGENTS}
    return choose("agent", name, known).name


def seeds_of(given: Any) -> tuple[int, ...]:
    """The first so many, or those."""
    if isinstance(given, list) and all(isinstance(seed, int) for seed in given):
        return tuple(given)
    if not isinstance(given, int):
        raise ValueError(f"seeds: a whole number or a list of them is needed, not {given!r}.")
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
            others = {other: right for agent in kinds for other, right in AGENTS[agent].Settings.other_names().items()}
            raise ValueError(unknown("setting", name, every, others))
    return {
        agent: {
            name: [parsed(name, value, known[name]) for value in split(text, is_list(known[name]))]
            for name, text in pairs.items()
            if name in known
        }
        for agent, known in kinds.items()
    }


def split(text: str, of_lists: bool = False) -> list[str]:
    """At commas outside of brackets; where each value is a list, one without brackets is a single one."""
    if of_lists and not text.startswith(("[", "(")):
        return [text]
    return [part.strip() for part in re.split(r",(?![^\[(]*[\])])", text)]


def _kinds(agent: type[Agent]) -> dict[str, Any]:
    """The type of every setting of an agent, with whatever choice."""
    classes = (*agent.settings_by_choice.values(), agent.Settings)
    return {
        setting.name: typing.get_type_hints(kind)[setting.name]
        for kind in classes
        for setting in dataclasses.fields(kind)
    }
