"""Documentation made from settings: signatures and docstrings of agents."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from steadyrl.rollouts.simulators.choose import ENGINES

_WIDTH = 76
"""Of text: help() indents it by 4 columns, which makes 80."""
_COMMON = (
    "risk_aversion",
    "measure",
    "alpha",
    "beta",
    "threshold",
    "mean",
    "solver",
    "policy_learning_rate",
    "learning_rate",
    "q_learning_rate",
    "value_learning_rate",
    "network",
    "hidden",
    "episodes_per_update",
    "batch_size",
    "gamma",
    "normalise_observations",
)
"""What users set first, in the order of help."""
_EXAMPLES = {"dqn": "CartPole-v1", "td3": "Pendulum-v1"}
"""Environments of examples; the others learn a table, in the Guarded Maze."""
_ARGUMENTS = {
    "env": "A Gymnasium id, 'module:factory', an environment, a function that creates one, or a vector environment.",
    "seed = 0": "Of all random numbers of training. At least 0.",
    "engine = auto": f"What simulates training episodes: 'auto' or one of {', '.join(map(repr, ENGINES))}.",
    "workers = 0": "How many processes play training episodes, for environments that are slow in Python; 0 for none, "
    "'auto' to measure the environment. Results do not depend on it.",
}
"""What constructors take besides settings."""


class Described(NamedTuple):
    """A setting under the choices of `mean` or `solver` that have it."""

    name: str
    fields: dict[str, dataclasses.Field[Any]]
    """Choice -> its field, the default choice first; the choice is "" where there is none."""
    types: dict[str, Any]
    """Choice -> its type."""

    @property
    def field(self) -> dataclasses.Field[Any]:
        """That of the default choice, if it has the setting."""
        return next(iter(self.fields.values()))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names that are not deprecated."""
        every = [alias for field in self.fields.values() for alias in field.metadata["aliases"]]
        return tuple(dict.fromkeys(alias.name for alias in every if not alias.deprecated))


def document(agent: Any) -> None:
    """Give an agent's class a signature and a docstring with every setting, for help(), editors and the command."""
    agent.__signature__ = _signature(agent)
    agent.__doc__ = _docstring(agent)


def summary(agent: Any) -> str:
    """What an agent does: the first paragraph of its docstring, as one line."""
    return " ".join((agent.__doc__ or "").split("\n\n")[0].split())


def settings_of(agent: Any) -> list[Described]:
    """All settings of an agent's class: the common ones first, then the others in the order of their declaration."""
    kinds = _kinds(agent)
    names = list(dict.fromkeys(field.name for kind in kinds.values() for field in dataclasses.fields(kind)))
    hints = {choice: typing.get_type_hints(kind) for choice, kind in kinds.items()}
    described = []
    for name in (*(name for name in _COMMON if name in names), *(name for name in names if name not in _COMMON)):
        own = {c: kind.__dataclass_fields__[name] for c, kind in kinds.items() if name in kind.__dataclass_fields__}
        described.append(Described(name, own, {choice: hints[choice][name] for choice in own}))
    return described


def _kinds(agent: Any) -> Mapping[str, Any]:
    """Choice -> settings class, the default one first."""
    default = {choice: kind for choice, kind in agent.settings_by_choice.items() if kind is agent.Settings}
    return {**(default or {"": agent.Settings}), **agent.settings_by_choice}


def _signature(agent: Any) -> inspect.Signature:
    """`env`, `seed`, `engine`, `workers` and every setting; defaults are those of the default choice."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("env", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("seed", keyword, default=0, annotation=int),
        inspect.Parameter("engine", keyword, default="auto", annotation=str),
        inspect.Parameter("workers", keyword, default=0, annotation=int | str),
    ]
    settings = [
        inspect.Parameter(each.name, keyword, default=each.field.default, annotation=next(iter(each.types.values())))
        for each in settings_of(agent)
    ]
    return inspect.Signature([*own, *settings])


def _docstring(agent: Any) -> str:
    """Summary, example, common settings, the other settings, then the rest of the class's own docstring."""
    first, *rest = inspect.cleandoc(agent.__doc__ or "").split("\n\n")
    settings = settings_of(agent)
    common = [_entry(agent, each) for each in settings if each.name in _COMMON]
    others = [_entry(agent, each) for each in settings if each.name not in _COMMON]
    sections = [
        _wrapped(first),
        f"Example:\n\n{_example(agent)}",
        "\n".join(["Settings:\n", *common]),
        "\n".join(["Other arguments:\n", *(f"{name}\n{_wrapped(text, '    ')}" for name, text in _ARGUMENTS.items())]),
        "\n".join(["Less common:\n", *others]) if others else "",
        "\n\n".join(["Notes:", *map(_wrapped_lines, rest)]) if rest else "",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _example(agent: Any) -> str:
    name = agent.__name__
    library = "steadyrl." if agent.__module__.startswith("steadyrl.") else ""
    risk = next((f"risk_aversion={each.field.default}, " for each in settings_of(agent) if each.name == _COMMON[0]), "")
    return textwrap.indent(
        f'env = "{_EXAMPLES.get(agent.name, "steadyrl/GuardedMaze-v0")}"\n'
        f"agent = {library}{name}(env, {risk}seed=0)\n"
        "agent.learn(total_episodes=1_000)\n"
        "print(steadyrl.evaluate(agent, env, episodes=100))",
        "    ",
    )


def _entry(agent: Any, described: Described) -> str:
    """Name and default on a line; below it what it is, its bounds, and what differs between choices."""
    fields, default = described.fields, described.field.default
    texts = _by_value({choice: f"{f.metadata['sentence']}{_bounds(f.metadata)}" for choice, f in fields.items()})
    first, *others = texts
    parts = [first, *(f"With {_with(agent, texts[text])}: {text}" for text in others)]
    if described.name != agent.choice:
        missing = _kinds(agent).keys() - fields.keys()
        parts += [f"Only with {_with(agent, fields)}."] if missing else []
        defaults = _by_value({choice: str(field.default) for choice, field in fields.items()})
        parts += [f"Default with {_with(agent, defaults[text])}: {text}." for text in list(defaults)[1:]]
    parts += [f"Also {', '.join(described.aliases)}."] if described.aliases else []
    head = textwrap.wrap(f"{described.name} = {default}", _WIDTH + 4, subsequent_indent="    ")
    return "\n".join([*head, _wrapped(" ".join(parts), indent="    ")])


def _by_value(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Text -> the choices that have it."""
    return {text: [choice for choice in texts if texts[choice] == text] for text in texts.values()}


def _with(agent: Any, choices: Iterable[str]) -> str:
    """Such as "solver='dqn' or 'td3'"."""
    return f"{agent.choice}={' or '.join(map(repr, choices))}"


def _bounds(metadata: Mapping[str, Any]) -> str:
    """The bounds or choices as a sentence, with a space before it; choices only if the help does not name them."""
    above, least, most, choices = (metadata[name] for name in ("above", "least", "most", "choices"))
    if choices is not None:
        named = all(repr(choice) in metadata["sentence"] for choice in choices)
        return "" if named else f" One of {', '.join(map(repr, choices))}."
    limits = [
        f"{words} {value:g}"
        for words, value in (("above", above), ("at least", least), ("at most", most))
        if value is not None
    ]
    return f" {', '.join(limits).capitalize()}." if limits else ""


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrapped_lines(paragraph: str) -> str:
    """A paragraph, or a list whose items begin with "- "."""
    items = paragraph.split("\n- ")
    if not paragraph.startswith("- "):
        return _wrapped(paragraph) if len(items) == 1 else paragraph
    return "\n".join(
        textwrap.fill(" ".join(item.removeprefix("- ").split()), _WIDTH, initial_indent="- ", subsequent_indent="  ")
        for item in items
    )
