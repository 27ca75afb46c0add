"""How numbers, settings and lists of names are written on the command line."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro

from steadyrl.base.names import nearest, plain
from steadyrl.base.shown import shown
from steadyrl.base.signals import defer_signals

MAX_COUNT = 2**53
"""Above it, not every whole number is a float."""
HUGE = {"episodes": 10**8, "timesteps": 10**9}
"""Runs above it have to be confirmed."""
_PER_SECOND = {"episodes": 10_000, "timesteps": 1_000_000}
"""What fast environments reach."""

_NO_HINT = tyro.conf.arg(help_behavior_hint="")
"""For options whose sentence names the default: tyro would add "(default: None)"."""


def named(metavar: str, *aliases: str) -> Any:
    """For an option whose sentence names its default: what help calls the value, and other names of the option."""
    return tyro.conf.arg(metavar=metavar, aliases=aliases or None, help_behavior_hint="")


Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, named("NAME=VALUE")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, _NO_HINT]
"""A switch that is off by default."""
Progress = Annotated[bool, _NO_HINT]
"""A switch that is on by default."""


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
PerhapsCount = Annotated[int | None, _COUNT, _NO_HINT]


def workers_of(text: str) -> int | str:
    """The number of worker processes, or "auto"."""
    if text.strip() == "auto":
        return "auto"
    try:
        return _count([text])
    except ValueError as error:
        raise ValueError(f"--workers {error} Or use auto.") from None


def check_options(command: str, kind: Any, arguments: Sequence[str]) -> None:
    """An error in one line for an option that a command does not have, with the one that was probably meant."""
    known = _options(kind)
    for place, argument in enumerate(arguments):
        if argument == "--":
            return
        name, _, value = argument.partition("=")
        if not argument.startswith("--") or plain(name) in known:
            continue
        following = arguments[place + 1 : place + 2]
        if not value and following and not following[0].startswith("--"):
            value = following[0]
        hint = _hint(
            "set" in known and _named_setting(name, arguments), value, nearest(name, known.values(), cutoff=0.7)
        )
        raise ValueError(
            f"{shown(name, 40, quotes=False)}: {command} has no such option.{hint} See steadyrl {command} --help."
        )


def _hint(setting: Any, value: str, option: str | None) -> str:
    """What was probably meant: a setting with that value, or an option."""
    if setting:
        return f" Did you mean --set {shlex.quote(f'{setting}={value}') if value else f'{setting}=VALUE'}?"
    return f" Did you mean {option}?" if option else ""


def _options(kind: Any) -> dict[str, str]:
    """The options of a command, without dashes -> as they are typed."""
    options = ["--help"]
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        options += [alias for mark in marks for alias in getattr(mark, "aliases", None) or ()]
        typed = name.replace("_", "-")
        options += [f"--{typed}"] if tyro.conf.Positional not in marks else []
        is_pair = bool in (hint, *typing.get_args(hint)[:1]) and tyro.conf.FlagCreatePairsOff not in marks
        options += [f"--no-{typed}"] if is_pair else []
    return {plain(option): option for option in options}


def _named_setting(name: str, arguments: Sequence[str]) -> str | None:
    """The setting of the agents in the command that an option is called like; None if there is none."""
    with defer_signals():  # An exception in the middle of the import of JAX can crash Python.
        from steadyrl.agents import AGENTS, agent_class
        from steadyrl.base.settings import types_of

    wanted = name.lstrip("-").replace("-", "_")
    texts = [after for option, after in itertools.pairwise(arguments) if option in ("--agent", "--agents")]
    texts += [text.split("=", 1)[1] for text in arguments if text.startswith(("--agent=", "--agents="))]
    with contextlib.suppress(ValueError):  # An unknown agent.
        chosen = [agent_class(agent) for text in texts for agent in names_in(text)]
        for kind in [*chosen, AGENTS["mg"], *AGENTS.values()]:
            for settings in kind.settings_classes():
                names = types_of((settings,))
                if found := nearest(wanted, names, settings.hints_for_other_names(), cutoff=0.85):
                    return found
    return None


def options_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """Options of an environment, from name=value."""
    return {name: value_of(text, f"--env-set {name}") for name, text in pairs_of("--env-set", texts).items()}


def typed_env(env: str, options: Mapping[str, Any]) -> str:
    """The options of a command that name an environment."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    given = [f"--env-set {shlex.quote(f'{name}={text}')}" for name, text in texts.items()]
    return " ".join([f"--env {shlex.quote(env)}", *given])


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
