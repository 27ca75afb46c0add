"""Writes `steadyrl.agents.signatures` from the settings classes: `python -m steadyrl.agents.make_signatures`."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any

from steadyrl.agents.describe import Described, settings_of
from steadyrl.agents.networks.description import CUSTOM
from steadyrl.agents.registry import AGENTS
from steadyrl.base.settings import Rule

_LAST = ("Auto", "None")
PATH = Path(__file__).with_name("signatures.py")
"""The module that is written."""

_HEAD = '''"""Keyword arguments of the agents, for editors and type checkers. Written by `make signatures`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from steadyrl.agents.networks.description import NetworkDescription

Auto = Literal["auto"] | None
"""Chooses a default that depends on other settings or on the environment."""
Layers = NetworkDescription | Mapping[str, Any] | Callable[[int], Any]
"""A description of layers, or a function that makes them."""


class Execution(TypedDict, total=False):
    """How training is run; results do not depend on it."""

    workers: int | Literal["auto"]
'''

_MAX_LINE = 120


def source() -> str:
    """The text of the module: a `TypedDict` for each agent of this package, with all settings and their aliases."""
    own = [kind for kind in AGENTS.values() if kind.__module__.startswith(f"{__package__}.")]
    return "\n\n".join([_HEAD, *map(_class, own)])


def _class(agent: Any) -> str:
    kinds: dict[str, dict[str, None]] = {}  # Name -> the parts of its type, in order and once each.
    for described in settings_of(agent):
        for name in (described.name, *described.aliases):
            kinds.setdefault(name, {}).update(dict.fromkeys(_parts(described)))
    lines = [_line(name, " | ".join(sorted(parts, key=_place))) for name, parts in kinds.items()]
    head = f'class {agent.__name__}Kwargs(Execution, total=False):\n    """Settings of `{agent.__name__}`."""\n'
    return "\n".join([head, *lines, ""])


def _line(name: str, kind: str) -> str:
    """A field of the class, folded as the formatter does it."""
    line = f"    {name}: {kind}"
    return line if len(line) <= _MAX_LINE else f"    {name}: (\n        {kind}\n    )"


def _place(part: str) -> int:
    return _LAST.index(part) + 1 if part in _LAST else 0


def _parts(described: Described) -> list[str]:
    """The members of the union of what a setting may be, under all choices."""
    parts = []
    for choice, field in described.fields.items():
        kind = described.types[choice]
        for member in typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,):
            parts += _names(member, field.metadata["choices"])
        if described.name == "network":
            parts += ["Layers"]
        parts += ["Auto"] if isinstance(field.default, Rule) else []
    return parts


def _names(kind: Any, choices: tuple[str, ...] | None) -> list[str]:
    if kind is str and choices is not None:
        quoted = ", ".join(f'"{choice}"' for choice in choices if choice != CUSTOM)
        return [f"Literal[{quoted}]"]
    if typing.get_origin(kind) is tuple:
        item, more = typing.get_args(kind)[0].__name__, typing.get_args(kind)[1]
        return [f"tuple[{item}, {'...' if more is ... else more.__name__}]", f"list[{item}]"]
    return ["None" if kind is types.NoneType else kind.__name__]


def main() -> None:
    """Write the module."""
    PATH.write_text(source(), encoding="utf-8")


if __name__ == "__main__":
    main()
