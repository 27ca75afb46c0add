"""A sweep as data: environments x agents x settings x seeds, and the jobs it expands to."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import reprlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent
from steadyrl.agents.settings import unknown_setting
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
MAX_SEEDS, MAX_RUNS = 10_000, 100_000
"""Of a sweep: each run is a folder."""
MAX_BUDGET = 10**12
"""Episodes or timesteps of a run."""

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
        self._check_number_of_runs()
        for seed in self.seeds:
            if not is_whole(seed) or not 0 <= seed < 2**32:
                raise ValueError(f"seeds: {reprlib.repr(seed)}: a seed is a whole number from 0 to {2**32 - 1}.")
        for what, given in (("envs", self.envs), ("agents", self.agents), ("seeds", self.seeds)):
            if not given:
                raise ValueError(f"{what}: name at least one.")
            if twice := repeated(given):
                raise ValueError(f"{what}: {twice[0]} is given twice: name each once.")
        for choices in (self.env_settings, *self.agents.values()):
            for name, values in choices.items():
                if not values or repeated(values):
                    raise ValueError(f"{name}: give it at least one value, and each once.")

    def _check_number_of_runs(self) -> None:
        """An error if there are too many runs; they are counted without making a list of them."""
        agents = {name: math.prod(map(len, choices.values())) for name, choices in self.agents.items()}
        options = math.prod(map(len, self.env_settings.values()))
        runs = len(self.envs) * options * sum(agents.values()) * len(self.seeds)
        if runs <= MAX_RUNS:
            return
        env_settings = [f"{len(values):,} values of {name}" for name, values in self.env_settings.items()]
        by_agent = [f"{count:,} of {name}" for name, count in agents.items()]
        factors = [f"{len(self.envs):,} envs", *env_settings, f"agents with settings ({', '.join(by_agent)})"]
        raise ValueError(
            f"this sweep has {runs:,} runs: {' x '.join(factors)} x {len(self.seeds):,} seeds. "
            f"At most {MAX_RUNS:,} are possible: give fewer values or seeds."
        )

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
    """`what,name=value,...` as the name of a folder; if that is too long, the `varied` ones and a digest of all.

    The same settings have the same name, in whatever order they are given, and with 1 for 1.0.
    """
    name = _listed(what, settings)
    plain = re.sub(r"[^\w.,=+-]", "-", name)
    if plain == name and len(name) <= MAX_NAME:
        return name
    short = re.sub(r"[^\w.,=+-]", "-", _listed(what, {key: settings[key] for key in settings if key in varied}))
    return f"{short[: MAX_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _listed(what: str, settings: Mapping[str, Any]) -> str:
    return ",".join([what, *(f"{key}={_text(value)}" for key, value in sorted(settings.items()))])


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(_text, value))
    is_whole_float = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value) if is_whole_float else value)


def repeated(values: Iterable[Any]) -> list[Any]:
    """The values that equal an earlier one."""
    seen: set[Hashable] = set()
    found = []
    for value in values:
        if _hashable(value) in seen:
            found.append(value)
        seen.add(_hashable(value))
    return found


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return value if isinstance(value, Hashable) else repr(value)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def seeds_of(given: Any) -> tuple[int, ...]:
    """The seeds of a number, which are the first ones, or of a list."""
    if isinstance(given, list):
        return tuple(given)
    check_number_of_seeds(given)
    return tuple(range(given))


def check_number_of_seeds(given: Any) -> None:
    """An error unless it is a whole number from 1 to MAX_SEEDS."""
    if not is_whole(given):
        raise ValueError(f"seeds {reprlib.repr(given)}: a whole number or a list of them is needed.")
    if given < 1:
        raise ValueError(f"seeds {given}: at least 1 is needed.")
    if given > MAX_SEEDS:
        raise ValueError(
            f"seeds {given}: that would be {given:,} runs of each agent with each choice of settings. "
            f"At most {MAX_SEEDS:,} seeds are possible."
        )


def budget_of(episodes: int | None, timesteps: int | None) -> dict[str, int]:
    """How long to train, in one of the two."""
    if episodes is not None and timesteps is not None:
        raise ValueError("give episodes or timesteps, not both.")
    return (
        {"timesteps": timesteps} if timesteps is not None else {"episodes": EPISODES if episodes is None else episodes}
    )


def choices_of_text(agents: Iterable[str], pairs: Mapping[str, str]) -> dict[str, Choices]:
    """Settings as a command gives them, name=value,value: for every agent that knows the name."""
    kinds = {agent: setting_types(AGENTS[agent]) for agent in agents}
    every = set().union(*kinds.values())
    for name in pairs:
        if name not in every:
            hints: dict[str, str] = {}
            for agent in kinds:
                for other, right in AGENTS[agent].Settings.hints_for_other_names().items():
                    hints[other] = hints.get(other) or right
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


def setting_types(agent: type[Agent]) -> dict[str, Any]:
    """The type of every setting of an agent, with any choice."""
    return types_of(agent.settings_classes())
