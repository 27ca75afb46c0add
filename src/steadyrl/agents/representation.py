"""An agent on one line: `<MeanGini on CartPole-v1, seed 0, risk_aversion=0.5, after 2,000 episodes>`."""

from __future__ import annotations

import dataclasses
from typing import Any

from steadyrl.agents.settings import AgentSettings, EnvKind
from steadyrl.base.settings import Rule
from steadyrl.base.shown import shown
from steadyrl.envs.description import describe_env

_MOST = 6
"""Settings in a line."""


def represent(agent: Any) -> str:
    """Class, environment, seed, the settings that are not the defaults, and how far it is trained."""
    kind = type(agent).__name__
    if "history" not in vars(agent):
        return f"<{kind}, not initialized>"
    where = "without an environment" if agent.env is None else f"on {env_label(agent.env)}"
    given = [f"{name}={shown(value, most=40)}" for name, value in changed_settings(agent).items()]
    more = [f"{len(given) - _MOST} more settings"] if len(given) > _MOST + 1 else []
    given = [*given[:_MOST], *more] if more else given
    episodes = agent.episodes
    trained = f"after {episodes:,} episode{'' if episodes == 1 else 's'}" if episodes else "untrained"
    return f"<{', '.join([f'{kind} {where}', f'seed {agent.seed}', *given, trained])}>"


def changed_settings(agent: Any) -> dict[str, Any]:
    """The settings that differ from the defaults for the agent's environment, in the order of its signature."""
    s: AgentSettings = agent.settings
    default = type(agent).settings_class(agent.chosen({}, agent.observation_space, agent.action_space))
    values = {}
    for field in sorted(dataclasses.fields(s), key=_place(agent)):
        value = getattr(s, field.name)
        changed = type(s) is not default if field.name == agent.choice else value != _default(field, s, agent.env_kind)
        if changed:
            values[field.name] = value
    return values


def env_label(env: Any) -> str:
    """The id of an environment, also of one that was wrapped since; without an id, the name of its class."""
    try:
        described = describe_env(env)
        spec = getattr(env, "spec", None)
        name = described["id"] if described else getattr(spec, "id", None)
    except Exception:  # A wrapper of others may raise anything, and a repr must not.
        name = None
    if isinstance(name, str) and name:
        return shown(name, quotes=False)
    try:
        return type(env.unwrapped).__name__
    except Exception:
        return type(env).__name__


def _default(field: dataclasses.Field[Any], settings: AgentSettings, kind: EnvKind) -> Any:
    """A rule applies to the settings as they are: what follows from a changed setting is no change of its own."""
    return field.default.value(settings, kind) if isinstance(field.default, Rule) else field.default


def _place(agent: Any) -> Any:
    names = list(type(agent).__signature__.parameters)
    return lambda field: names.index(field.name) if field.name in names else len(names)
