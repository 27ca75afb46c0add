"""Settings as frozen data that describes and checks itself.

Every field is declared with `setting(default, sentence, bounds)`. The sentence is the help text, and a value out of
bounds or a name that does not exist is an error that says what would be right.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from steadyrl.naming import unknown


def setting(
    default: Any,
    sentence: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with a help sentence and bounds: `above` excludes its own value, `least` and `most` do not."""
    bounds = {"above": above, "least": least, "most": most, "choices": choices}
    return dataclasses.field(default=default, metadata={"sentence": sentence, **bounds})


@dataclass(frozen=True)
class Settings:
    """Base of every agent's settings."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _checked(field, hints[field.name], getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From names and values; an unknown name is an error that names the nearest right one."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(unknown("setting", name, known, cls.other_names()))
        return cls(**values)

    @classmethod
    def of_text(cls, pairs: Mapping[str, str]) -> Self:
        """From names and texts, as the command line gives them."""
        hints = typing.get_type_hints(cls)
        return cls.of({k: parsed(k, text, hints[k]) if k in hints else text for k, text in pairs.items()})

    @classmethod
    def other_names(cls) -> dict[str, str]:
        """What others call a setting -> its name; a sentence that begins `lambda:` gives the paper's symbol."""
        fields = {field.name: field.metadata["sentence"] for field in dataclasses.fields(cls)}
        symbols = {sentence.split(":")[0]: name for name, sentence in fields.items() if ":" in sentence}
        rate = next(
            (name for name in ("policy_learning_rate", "q_learning_rate", "learning_rate") if name in fields), None
        )
        rates = dict.fromkeys(("alpha", "lr", "learning_rate"), rate) if rate else {}
        return {**rates, **symbols}

    @classmethod
    def describe(cls) -> str:
        """One line a setting: name, default, sentence."""
        fields = dataclasses.fields(cls)
        width = max(len(f"{field.name} = {field.default}") for field in fields)
        return "\n".join(f"{f'{f.name} = {f.default}':<{width}}  {f.metadata['sentence']}" for f in fields)


def _checked(field: dataclasses.Field[Any], kind: Any, value: Any) -> Any:
    kinds = _kinds(kind)
    if isinstance(value, np.generic):  # NumPy's numbers count as Python's own.
        value = value.item()
    if value is None and types.NoneType in kinds:
        return value
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, list | tuple) and tuple in kinds:
        return tuple(_item(field, item) for item in value)
    if type(value) not in kinds:
        raise ValueError(f"{_said(field.name, value)} a {_names(kinds)} is needed. {field.metadata['sentence']}")
    if problem := _out_of_bounds(field.metadata, value):
        raise ValueError(f"{_said(field.name, value)} {problem} {field.metadata['sentence']}")
    return value


def _item(field: dataclasses.Field[Any], item: Any) -> int:
    """One of several whole numbers."""
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise ValueError(f"{_said(field.name, item)} whole numbers are needed. {field.metadata['sentence']}")
    if problem := _out_of_bounds(field.metadata, int(item)):
        raise ValueError(f"{_said(field.name, item)} {problem} {field.metadata['sentence']}")
    return int(item)


def _out_of_bounds(bounds: Mapping[str, Any], value: Any) -> str:
    above, least, most, choices = bounds["above"], bounds["least"], bounds["most"], bounds["choices"]
    if choices is not None:
        return "" if value in choices else f"it is one of {', '.join(choices)}."
    if not isinstance(value, (int, float)):
        return ""
    if not math.isfinite(value):
        return "it must be finite."
    if above is not None and value <= above:
        return f"it must be above {above}."
    if least is not None and value < least:
        return f"it must be at least {least}."
    if most is not None and value > most:
        return f"it must be at most {most}."
    return ""


def is_list(kind: Any) -> bool:
    """Whether a setting of that type is several numbers."""
    return tuple in _kinds(kind)


def parsed(name: str, text: str, kind: Any) -> Any:
    """The value of a setting of that type from its text."""
    kinds = _kinds(kind)
    if text.lower() == "none" and types.NoneType in kinds:
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if tuple in kinds:
        try:
            return tuple(int(item) for item in text.strip("()[] ").split(",") if item.strip())
        except ValueError:
            raise ValueError(f"{_said(name, text)} whole numbers are needed, such as {name}=64,64.") from None
    for number in (int, float):
        if number in kinds:
            try:
                return number(text)
            except ValueError:
                continue
    if str in kinds:
        return text
    raise ValueError(f"{_said(name, text)} a {_names(kinds)} is needed.")


def _kinds(kind: Any) -> tuple[type, ...]:
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return tuple(typing.get_origin(one) or one for one in kinds)


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if k is types.NoneType else k.__name__ for k in kinds)


def _said(name: str, value: Any) -> str:
    return f"{name}={value!r}:" if not isinstance(value, str) else f"{name}={value}:"
