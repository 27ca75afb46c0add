"""Options of environments by name, checked against the defaults of what creates the environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import find_highest_version, get_env_id, load_env_creator, parse_env_id

from steadyrl.base.shown import shown
from steadyrl.envs.factory_path import find_factory
from steadyrl.envs.jax_libraries import GYMNAX


def checked_options(env: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with an error for anything else where the default is True or False: "False" would count as true.

    A number such as 1e4 becomes a whole one where the default is. Unknown options, and environments that cannot be
    found, are left for `resolve` to report.
    """
    defaults = _defaults(env) if options else {}
    for name, value in options.items():
        if isinstance(defaults.get(name), bool) and not isinstance(value, bool | np.bool_) and value not in (0, 1):
            raise ValueError(f"environment {env}: {name}={shown(value, quotes=False)}: true or false is needed.")
    return {name: _like(defaults.get(name), value) for name, value in options.items()}


def _like(default: Any, value: Any) -> Any:
    if isinstance(default, bool) and isinstance(value, int):
        return bool(value)
    whole = type(default) is int and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def _defaults(env: str) -> dict[str, Any]:
    """Option -> its default, as far as the factory or the entry point of the id declares it."""
    if env.startswith(GYMNAX):
        return {}
    try:
        factory = find_factory(env)
        if factory is not None:
            return _declared(factory)
        namespace, name, version = parse_env_id(env.rsplit(":", 1)[-1])
        version = find_highest_version(namespace, name) if version is None else version
        spec = gym.spec(get_env_id(namespace, name, version))
        entry_point = spec.entry_point
        creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    except (ValueError, ImportError, AttributeError, gym.error.Error):
        return {}
    return {**(_declared(creator) if creator is not None else {}), **spec.kwargs}


def _declared(factory: Callable[..., Any]) -> dict[str, Any]:
    """Defaults in the signature, and for a class also in those of its base classes, to which it may pass options."""
    classes = factory.__mro__ if inspect.isclass(factory) else ()
    defaults: dict[str, Any] = {}
    for each in [vars(cls)["__init__"] for cls in classes if "__init__" in vars(cls)] or [factory]:
        try:
            parameters = inspect.signature(each).parameters.values()
        except (TypeError, ValueError):  # Written in C.
            continue
        for parameter in parameters:
            if parameter.default is not inspect.Parameter.empty:
                defaults.setdefault(parameter.name, parameter.default)
    return defaults
