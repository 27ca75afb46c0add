"""How numbers, settings and lists of names are written on the command line."""

from __future__ import annotations

import json
from typing import Annotated, Any

import tyro

from steadyrl.base.names import plain

Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


def _count(texts: list[str]) -> int:
    """A whole number, also as 1e4 or 10_000."""
    text = texts[0]
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise ValueError(f"{text!r} is not a whole number, such as 20000 or 2e4.")
    return int(text) if text.lstrip("+-").replace("_", "").isdigit() else int(value)


_COUNT = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="N",
    instance_from_str=_count,
    is_instance=lambda value: value is None or isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
Count = Annotated[int, _COUNT]
PerhapsCount = Annotated[int | None, _COUNT]


def options_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """Options of an environment, from name=value."""
    return {name: value_of(text) for name, text in pairs_of("--env-set", texts).items()}


def pairs_of(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """What was given to an option as name=value."""
    for text in texts:
        if "=" not in text:
            raise ValueError(f"{option} {text}: write name=value.")
    return dict(text.split("=", 1) for text in texts)


def value_of(text: str) -> Any:
    """A number, true, false or list as JSON has it; anything else is text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def names_in(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def logger_names(text: str, tensorboard: bool = False) -> tuple[str, ...]:
    """The loggers that --log names, each once; --tensorboard adds one."""
    names = [*names_in(text), *(["tensorboard"] if tensorboard else [])]
    return tuple({plain(name): name for name in names}.values())
