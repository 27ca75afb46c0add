"""How numbers, settings and lists of names are written on the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import tyro

from steadyrl.base.names import plain
from steadyrl.base.shown import shown

MAX_COUNT = 2**53
"""Above it, not every whole number is a float."""
HUGE = {"episodes": 10**8, "timesteps": 10**9}
"""Runs above it have to be confirmed."""
_PER_SECOND = {"episodes": 10_000, "timesteps": 1_000_000}
"""What fast environments reach."""

Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


def _count(texts: list[str]) -> int:
    """A whole number, also as 1e4 or 10_000."""
    text = texts[0].strip()
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if text[-1:].isdigit() and value > MAX_COUNT:
        raise ValueError(f"{shown(text, 40)} is too large: at most 2**53, about 9e15, can be counted.")
    if not value.is_integer():
        raise ValueError(f"{shown(text, 40)} is not a whole number, such as 20000 or 2e4.")
    return int(text) if text.lstrip("+-").replace("_", "").isdecimal() else int(value)


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
    return {name: value_of(text, f"--env-set {name}") for name, text in pairs_of("--env-set", texts).items()}


def pairs_of(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """What was given to an option as name=value."""
    for text in texts:
        if "=" not in text:
            raise ValueError(f"{option} {text}: write name=value.")
    return dict(text.split("=", 1) for text in texts)


def value_of(text: str, option: str) -> Any:
    """The value of an option of an environment; an error names the `option`."""
    from steadyrl.base.values import read_value

    try:
        return read_value(text)
    except ValueError as error:
        raise ValueError(f"{option}={shown(text, 40, quotes=False)}: {error}") from None


def names_in(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def logger_names(text: str, tensorboard: bool = False) -> tuple[str, ...]:
    """The loggers that --log names, each once; --tensorboard adds one."""
    names = [*names_in(text), *(["tensorboard"] if tensorboard else [])]
    return tuple({plain(name): name for name in names}.values())


def confirm_budget(budget: Mapping[str, int], yes: bool) -> None:
    """Ask before a run that would take days; an error if it cannot be counted, is declined, or nobody can be asked."""
    ((unit, number),) = budget.items()
    if number > MAX_COUNT:
        raise ValueError(f"--{unit} {shown(number, 40)}: at most 2**53, about 9e15, can be counted.")
    if yes or number <= HUGE[unit]:
        return
    hours = number / _PER_SECOND[unit] / 3600
    takes = f"{hours:,.0f} hours" if hours < 100 else f"{hours / 24:,.0f} days"
    size = f"{number:,} {unit}: at {_PER_SECOND[unit]:,} a second that takes {takes}, and most environments are slower."
    if not sys.stdin.isatty():
        raise ValueError(f"--{unit} {size} Lower it, or add --yes.")
    print(f"{size} Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError(f"--{unit} {number:,}: not confirmed, so nothing was trained.")
