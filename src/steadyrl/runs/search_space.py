"""Search spaces as data: which settings of an agent are tuned, and in which ranges."""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from steadyrl.agents import AGENTS
from steadyrl.agents.settings import unknown_setting
from steadyrl.base.parsing import parse_toml
from steadyrl.base.settings import canonical, is_list, parsed
from steadyrl.runs.sweep import setting_types, split
from steadyrl.runs.toml_file import read_toml

_EXAMPLE = "Write name=low:high, name=low:high:log, or name=value,value."


class Dimension(NamedTuple):
    """A setting and its range: two ends, or some values."""

    name: str
    kind: str
    """float, int or choice."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name}={','.join(json.dumps(choice) for choice in self.choices)}"
        return f"{self.name}={self.low:g}:{self.high:g}{':log' if self.log else ''}"

    def contains(self, value: Any) -> bool:
        """Whether a value is within the range."""
        if self.kind == "choice":
            return value in self.choices or (isinstance(value, tuple) and list(value) in self.choices)
        return isinstance(value, int | float) and self.low <= value <= self.high

    def as_data(self) -> dict[str, Any]:
        """For the record of a study."""
        return {**self._asdict(), "choices": [json.dumps(choice) for choice in self.choices]}


Space = dict[str, Dimension]


def default_space(agent: Any) -> Space:
    """The dimensions of the tables for an agent, which is one that was made for the environment."""
    data, settings = _tables(), agent.settings
    chosen = getattr(settings, "mean", None) or getattr(settings, "solver", None) or agent.name
    part = {"reinforce": "vpg"}.get(chosen, chosen)
    network = getattr(settings, "network", None)
    of_network = f"{part}_{'table' if network == 'table' else 'mlp'}"
    tables = [data["parts"].get(of_network) or data["parts"].get(part, {}), data["agents"].get(agent.name, {})]
    if network == "gru":  # What is counted otherwise, or more costly.
        tables.append(data["parts"].get(f"{part}_gru", {}))
    known = vars(settings)
    lines = {name: line for table in tables for name, line in table.items() if name in known}
    # With credit for whole trajectories there is no risk critic.
    if getattr(settings, "credit", "step") != "step":
        lines = {name: line for name, line in lines.items() if not name.startswith("risk_")}
    return {name: dimension_of(agent.name, name, line) for name, line in lines.items()}


@cache
def _tables() -> Any:
    return parse_toml((files("steadyrl.runs") / "search_spaces.toml").read_text(encoding="utf-8"))


def dimension_of(agent: str, name: str, line: Any) -> Dimension:
    """From a line of a table; an error for an unknown setting or a range without meaning."""
    kinds = setting_types(AGENTS[agent])
    if name not in kinds:
        raise ValueError(unknown_setting(name, set(kinds), AGENTS[agent].Settings.hints_for_other_names()))
    classes = AGENTS[agent].settings_classes()
    is_own = any(name in cls.__dataclass_fields__ for cls in classes)
    own = name if is_own else next(iter(canonical({name: None}, classes, warn=False)))
    if isinstance(line, Mapping):
        if unknown := set(line) - {"low", "high", "log"}:
            raise ValueError(f"{name}: {sorted(unknown)[0]} is no part of a range, which has low, high and log.")
        return _range(own, kinds[name], line.get("low"), line.get("high"), bool(line.get("log", False)))
    if not isinstance(line, list | tuple) or len(line) < 2:
        raise ValueError(f"{name}: a range with low and high, or a list of at least two values is needed. {_EXAMPLE}")
    if len({json.dumps(value) for value in line}) < len(line):
        raise ValueError(f"{name}: a value is given twice: name each once.")
    return Dimension(own, "choice", choices=tuple(line))


def _range(name: str, kind: Any, low: Any, high: Any, log: bool) -> Dimension:
    kinds = typing.get_args(kind) or (kind,)
    if not (int in kinds or float in kinds) or is_list(kind):
        raise ValueError(f"{name}: it is not a number, so it has no range. Give some values: {name}=value,value.")
    whole = int in kinds
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise ValueError(f"{name}: {end} is no end of a range: a number is needed. {_EXAMPLE}")
        if whole and not float(end).is_integer():
            raise ValueError(f"{name}: {end:g} is no end of a range: whole numbers are needed.")
    if low >= high:
        raise ValueError(f"{name}: the low end {low:g} is not below the high end {high:g}.")
    if log and low <= 0:
        raise ValueError(f"{name}: a logarithmic range needs a low end above 0, not {low:g}.")
    return Dimension(name, "int" if whole else "float", low, high, log)


def space_of_texts(agent: str, texts: tuple[str, ...]) -> Space:
    """From the options of a command: `name=low:high[:log]`, `name=value,value`, or a TOML file of lines."""
    space: Space = {}
    for text in texts:
        if text.endswith(".toml") and "=" not in text:
            data = read_toml(Path(text))
            lines = data.get("search", data)
            found = [dimension_of(agent, name, line) for name, line in lines.items()]
        else:
            found = [_of_text(agent, text)]
        space |= {dimension.name: dimension for dimension in found}
    return space


def _of_text(agent: str, text: str) -> Dimension:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise ValueError(f"--search {text}: {_EXAMPLE}")
    kinds = setting_types(AGENTS[agent])
    kind = kinds.get(name, str)
    parts = value.split(":")
    if len(parts) > 1 and name in kinds:
        if len(parts) > 3 or (len(parts) == 3 and parts[2] not in ("log", "linear")):
            raise ValueError(f"--search {text}: that is no range. {_EXAMPLE}")
        ends = [_number(name, part) for part in parts[:2]]
        return dimension_of(agent, name, {"low": ends[0], "high": ends[1], "log": parts[2:] == ["log"]})
    choices = [parsed(name, one, kind) for one in split(value)]
    return dimension_of(agent, name, [list(one) if isinstance(one, tuple) else one for one in choices])


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--search {name}: {text} is not a number. {_EXAMPLE}") from None


def check_space(check: Callable[[Mapping[str, Any]], None], space: Space) -> None:
    """An error if an end of a range, or a choice, is one that the agent refuses, which `check(settings)` raises."""
    for dimension in space.values():
        for value in dimension.choices or (dimension.low, dimension.high):
            number = int(value) if dimension.kind == "int" else value
            try:
                check({dimension.name: number})
            except ValueError as error:
                raise ValueError(f"search of {dimension}: {error}") from None
