"""Settings as frozen data that describe and check themselves.

Every field is declared with `setting(default, sentence, bounds)`. The sentence is the help text; a value out of bounds
or an unknown name is an error that says what would be right. A default may be a `Rule` that depends on other settings
or on the environment: it is declared where the setting is and resolved once, by `Settings.resolve`.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from steadyrl.base.names import unknown
from steadyrl.base.pytree import register_pytree
from steadyrl.base.shown import shown
from steadyrl.base.values import read_value

MAX_WHOLE = 2**31 - 1
"""Bound of whole numbers without one of their own: what a 32-bit integer holds."""


_ELSEWHERE = {
    **dict.fromkeys(("lam", "lambda", "risk", "risk_coef"), ("risk_aversion", "gae_lambda")),
    **dict.fromkeys(("net_arch", "policy_kwargs", "hidden_sizes", "hidden_layers"), ("hidden",)),
    **dict.fromkeys(("n_epochs", "epochs", "noptepochs"), ("inner_updates",)),
}
"""Names in Stable-Baselines3 and other libraries -> the settings that may be meant, the likeliest first."""


class Rule(NamedTuple):
    """A default that follows from other settings and the environment."""

    value: Callable[[Any, Any], Any]
    """`value(settings, context)`; other settings are resolved when it reads them."""
    text: str
    """The rule in a few words, for help."""

    def __repr__(self) -> str:
        return self.text


class Alias(NamedTuple):
    """Another name of a setting."""

    name: str
    convert: Callable[[Any], Any] = lambda value: value
    """From the value under the other name to that of the setting."""
    deprecated: bool = False
    """Whether its use gets a warning."""


def setting(
    default: Any,
    sentence: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] | None = None,
    aliases: tuple[str | Alias, ...] = (),
) -> Any:
    """A dataclass field with a help sentence and bounds: `above` excludes its own value, `least` and `most` do not.

    Whole numbers are at most `MAX_WHOLE` where `most` is not given.
    """
    other_names = tuple(Alias(alias) if isinstance(alias, str) else alias for alias in aliases)
    bounds = {"above": above, "least": least, "most": most, "choices": choices}
    return dataclasses.field(default=default, metadata={"sentence": sentence, "aliases": other_names, **bounds})


def override(cls: type[Settings], name: str, default: Any) -> Any:
    """The setting of a base class with another default."""
    field = cls.__dataclass_fields__[name]
    return dataclasses.field(default=default, metadata=field.metadata)


@dataclass(frozen=True)
class Settings:
    """Base of every agent's settings. A JAX pytree whose leaves are the numbers: `float`, `float | None`, or a range.

    What a program is compiled for is the rest: whole numbers, switches and choices.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register_pytree(cls, _floats)

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _checked(field, hints[field.name], getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From names and values; an unknown name is an error that names the nearest right one."""
        values = canonical(values, (cls,))
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(unknown("setting", name, known, cls.hints_for_other_names()))
        return cls(**values)

    @classmethod
    def of_text(cls, pairs: Mapping[str, str]) -> Self:
        """From names and texts, as the command line gives them."""
        kinds = types_of((cls,))
        return cls.of({name: parsed(name, text, kinds.get(name, str)) for name, text in pairs.items()})

    def resolve(self, context: Any) -> Self:
        """With every `Rule` replaced by its value in an environment that `context` describes."""
        resolver = _Resolver(self, context)
        resolved = {field.name: getattr(resolver, field.name) for field in dataclasses.fields(self)}
        return type(self)(**resolved)

    @classmethod
    def hints_for_other_names(cls) -> dict[str, str]:
        """Symbols of the paper and names used elsewhere -> the setting, to suggest in errors; "" if there is none."""
        fields = {field.name: field.metadata["sentence"] for field in dataclasses.fields(cls)}
        symbols = {sentence.split(":")[0]: name for name, sentence in fields.items() if ":" in sentence}
        rate = next(
            (name for name in ("policy_learning_rate", "q_learning_rate", "learning_rate") if name in fields), None
        )
        rates = dict.fromkeys(("alpha", "lr", "learning_rate"), rate) if rate else {}
        # Empty where the settings have nothing of the kind: a name that is merely spelled alike would mislead.
        elsewhere = {name: next((own for own in meant if own in fields), "") for name, meant in _ELSEWHERE.items()}
        return {**elsewhere, **rates, **symbols}

    @classmethod
    def describe(cls) -> str:
        """One line for each setting: name, default, sentence."""
        fields = dataclasses.fields(cls)
        width = max(len(f"{field.name} = {field.default}") for field in fields)
        return "\n".join(
            f"{f'{f.name} = {f.default}':<{width}}  {f.metadata['sentence']}{_also(f.metadata['aliases'])}"
            for f in fields
        )


def _also(aliases: tuple[Alias, ...]) -> str:
    """The other names that are not deprecated, for help."""
    names = [alias.name for alias in aliases if not alias.deprecated]
    return f" (Also {', '.join(names)}.)" if names else ""


def _floats(cls: type) -> list[str]:
    hints = typing.get_type_hints(cls)
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return [name for name, kind in kinds.items() if kind in (float, float | None) or takes_range(kind)]


class _Resolver:
    """Reads a setting, resolving its rule and those that the rule reads."""

    def __init__(self, settings: Settings, context: Any) -> None:
        self._settings, self._context = settings, context

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._settings, name)
        return value.value(self, self._context) if isinstance(value, Rule) else value


def canonical(given: Mapping[str, Any], classes: tuple[type[Settings], ...], warn: bool = True) -> dict[str, Any]:
    """The settings `given`, under their own names instead of aliases that one of the `classes` accepts.

    The first class that knows an alias decides. With `warn`, deprecated names get a warning.
    """
    known = {field.name for field in dataclasses.fields(classes[0])}
    aliases = {
        alias.name: (field.name, alias)
        for cls in reversed(classes)
        for field in dataclasses.fields(cls)
        for alias in field.metadata["aliases"]
    }
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in known or name not in aliases:
            own, converted = name, value
        else:
            own, alias = aliases[name]
            converted = alias.convert(value)
            if alias.deprecated and warn:
                text = f"the setting {name} is now called {own}."
                warnings.warn(text, DeprecationWarning, stacklevel=_users_level())
        if own in values:
            raise ValueError(f"{name}: it is another name of {own}, which is given too. Give one of them.")
        values[own] = converted
    return values


def _users_level() -> int:
    """The `stacklevel` of the user's line: elsewhere Python does not show a DeprecationWarning by default."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "steadyrl":
        frame, level = frame.f_back, level + 1
    return level


def types_of(classes: tuple[type[Settings], ...]) -> dict[str, Any]:
    """The type of every setting, under its own name and its aliases."""
    kinds: dict[str, Any] = {}
    for cls in classes:
        hints = typing.get_type_hints(cls)
        for field in dataclasses.fields(cls):
            for name in (field.name, *(alias.name for alias in field.metadata["aliases"])):
                kinds.setdefault(name, hints[field.name])
    return kinds


def _checked(field: dataclasses.Field[Any], kind: Any, value: Any) -> Any:
    kinds = _kinds(kind)
    if isinstance(value, np.generic):  # NumPy's numbers count as Python's own.
        value = value.item()
    if isinstance(value, Rule) or (value is None and types.NoneType in kinds):
        return value
    if (value is None or (isinstance(value, str) and value == "auto")) and isinstance(field.default, Rule):
        return field.default
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        value = _as_float(value)
    if isinstance(value, list | tuple) and takes_range(kind):
        return _range(field, value)
    if isinstance(value, list | tuple) and tuple in kinds:
        return tuple(_item(field, item) for item in value)
    if type(value) not in kinds:
        raise ValueError(f"{_assigned(field.name, value)} {_needed(kinds)} is needed. {field.metadata['sentence']}")
    if problem := _out_of_bounds(field.metadata, value):
        raise ValueError(f"{_assigned(field.name, value)} {problem} {field.metadata['sentence']}")
    return value


def _item(field: dataclasses.Field[Any], item: Any) -> int:
    """One of several whole numbers."""
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise ValueError(f"{_assigned(field.name, item)} whole numbers are needed. {field.metadata['sentence']}")
    if problem := _out_of_bounds(field.metadata, int(item)):
        raise ValueError(f"{_assigned(field.name, item)} {problem} {field.metadata['sentence']}")
    return int(item)


def _range(field: dataclasses.Field[Any], ends: list[Any] | tuple[Any, ...]) -> tuple[float, ...]:
    """Two numbers, the lower one first, each within the bounds."""
    numbers = tuple(_checked(field, float, end) for end in ends)
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError(f"{_assigned(field.name, tuple(ends))} a range is two numbers, the lower one first.")
    return numbers


def _out_of_bounds(bounds: Mapping[str, Any], value: Any) -> str:
    above, least, most, choices = bounds["above"], bounds["least"], bounds["most"], bounds["choices"]
    if choices is not None:
        return "" if value in choices else f"it is one of {', '.join(choices)}."
    if not isinstance(value, (int, float)):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return "it must be finite."
    if above is not None and value <= above:
        return f"it must be above {above}."
    if least is not None and value < least:
        return f"it must be at least {least}."
    if most is None and isinstance(value, int):
        most = MAX_WHOLE
    if most is not None and value > most:
        return f"it must be at most {most}."
    if isinstance(value, int) and value < -MAX_WHOLE:
        return f"it must be at least {-MAX_WHOLE}."
    return ""


def _as_float(value: int) -> float:
    """The number; infinite, which no setting may be, if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_list(kind: Any) -> bool:
    """Whether a setting of that type is several numbers."""
    return tuple in _kinds(kind) and not takes_range(kind)


def takes_range(kind: Any) -> bool:
    """Whether a setting of that type is a number or a range, `float | tuple[float, float]`."""
    return {float, tuple} <= set(_kinds(kind))


def parsed(name: str, text: str, kind: Any) -> Any:
    """The value of a setting of that type from its text; see `read_value`."""
    kinds = _kinds(kind)
    if is_list(kind):
        return _parsed_list(name, text)
    if takes_range(kind) and (ends := _parsed_range(text)):
        return ends
    try:
        value = read_value(text)
    except ValueError:
        value = text.strip()
    if str in kinds:
        return value if isinstance(value, str) else text
    if value is None or value == "auto" or (isinstance(value, bool) and bool in kinds):
        return value
    if int in kinds and (whole := _whole(value)) is not None:
        return whole
    if float in kinds and not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ValueError(f"{_assigned(name, text)} {_needed(kinds)} is needed.")


def _parsed_list(name: str, text: str) -> Any:
    """Whole numbers, in brackets or not; none of them only in brackets, for nothing may be a slip."""
    if text.strip().lower() in ("none", "null"):
        return None
    brackets = text.strip().startswith(("[", "("))
    try:
        value = read_value(text if brackets else f"[{text}]")
    except ValueError:
        value = None
    items = value if isinstance(value, list) else [value]
    whole = [_whole(item) for item in items]
    if None in whole or not (whole or brackets):
        raise ValueError(
            f"{_assigned(name, text)} whole numbers are needed, such as {name}=64,64; or {name}=[] for none."
        )
    return tuple(whole)


def _parsed_range(text: str) -> tuple[Any, ...] | None:
    """The ends of a range that is written as 0:3 or as [0, 3]; None if it is none."""
    low, colon, high = text.partition(":")
    try:
        value = [read_value(low), read_value(high)] if colon else read_value(text)
    except ValueError:
        return None
    return tuple(value) if isinstance(value, list) else None


def _whole(value: Any) -> int | None:
    """A whole number, also one that is written as 1e4; None if it is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kinds(kind: Any) -> tuple[type, ...]:
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return tuple(typing.get_origin(one) or one for one in kinds)


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", tuple: "a list"}


def _needed(kinds: tuple[type, ...]) -> str:
    if {float, tuple} <= set(kinds):
        return "a number, or a range such as (0, 3) or 0:3,"
    return " or ".join("None" if kind is types.NoneType else _WORDS.get(kind, kind.__name__) for kind in kinds)


def _assigned(name: str, value: Any) -> str:
    return f"{name}={shown(value, quotes=False)}:"
