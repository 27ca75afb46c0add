"""Documentation made from settings: signatures and docstrings of agents."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from steadyrl.envs.source import AnyEnv


def document(agent: Any) -> None:
    """Give an agent's class a signature and a docstring with every setting, for help(), editors and the command."""
    agent.__signature__ = _signature(agent)
    agent.__doc__ = f"{inspect.cleandoc(agent.__doc__ or '')}\n\n{_settings(agent)}\n"


def _settings(agent: Any) -> str:
    kinds = agent.settings_by_choice or {"": agent.Settings}
    return "\n\n".join(
        f"Settings{f' with {agent.choice}={chosen!r}' if chosen else ''}:\n\n{kind.describe()}"
        for chosen, kind in kinds.items()
    )


def _signature(agent: Any) -> inspect.Signature:
    """`env`, `seed`, `engine` and every setting; defaults are those of the default choice."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("env", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=AnyEnv),
        inspect.Parameter("seed", keyword, default=0, annotation=int),
        inspect.Parameter("engine", keyword, default="auto", annotation=str),
    ]
    kinds = (*reversed([*agent.settings_by_choice.values()]), agent.Settings)
    fields = {field.name: field for kind in kinds for field in dataclasses.fields(kind)}
    return inspect.Signature(
        [*own, *(inspect.Parameter(f.name, keyword, default=f.default, annotation=f.type) for f in fields.values())]
    )
