"""Which settings class an agent has, where the mean part or the solver can be chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym

from steadyrl.agents.settings import AgentSettings, unknown_setting
from steadyrl.base.settings import canonical


class SettingsChoice:
    """The settings classes of an agent, and the one that given settings belong to."""

    name: ClassVar[str]
    """What the command line and checkpoints call this agent."""
    Settings: ClassVar[type[AgentSettings]]
    """Its settings; where there is a choice, with the default one."""
    settings_by_choice: ClassVar[Mapping[str, type[AgentSettings]]] = {}
    """The settings with each way to maximize the mean, or each solver, where there is a choice."""
    choice: ClassVar[str] = "mean"
    """The setting that decides between them."""

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """The settings that are `given`, plus those that decide which other settings there are."""
        return given

    @classmethod
    def settings_classes(cls) -> tuple[type[AgentSettings], ...]:
        """All settings classes, the default one first."""
        return (cls.Settings, *(kind for kind in cls.settings_by_choice.values() if kind is not cls.Settings))

    @classmethod
    def settings_class(cls, given: Mapping[str, Any]) -> type[AgentSettings]:
        """The class that the settings `given` belong to; an error for one that belongs to another choice."""
        chosen = given.get(cls.choice)
        if isinstance(chosen, str) and cls.settings_by_choice and chosen not in cls.settings_by_choice:
            raise ValueError(f"{cls.choice}={chosen}: it is one of {', '.join(cls.settings_by_choice)}.")
        kind = cls.settings_by_choice.get(str(chosen), cls.Settings)
        every = set().union(*map(_names, cls.settings_classes()))
        for name in canonical(given, (kind, *cls.settings_classes()), warn=False):
            if name in _names(kind):
                continue
            for other_choice, other in cls.settings_by_choice.items():
                if name in _names(other):
                    with_it = f"{cls.name} with {cls.choice}={other_choice!r}"
                    raise ValueError(f"{name}: it is a setting of {with_it}. Set that too, or leave it out.")
            raise ValueError(unknown_setting(name, every, kind.hints_for_other_names()))
        return kind

    @classmethod
    def settings_of(cls, given: Mapping[str, Any]) -> AgentSettings:
        """From names and values."""
        return cls.settings_class(given).of(given)


def _names(settings: type[AgentSettings]) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}
