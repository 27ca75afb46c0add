"""Environments of one's own by name: `module:factory`, a class or function in a module that makes one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from steadyrl.naming import unknown

_MADE_FROM = "_steadyrl_made_from"


def find_factory(name: str) -> Callable[..., Any] | None:
    """What `module:factory` names; None for an id, be it plain or Gymnasium's own `module:Env-v0`.

    The module of either is imported, so that it can register its ids.
    """
    if ":" not in name:
        return None
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise ValueError(f"environment {name!r}: name a module and, after the colon, what makes the environment in it.")
    module = _imported(module_name, name)
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    if found is not None:
        raise ValueError(
            f"environment {name}: {path} in {module_name} is a {type(found).__name__}. "
            "Name a class or function that makes the environment."
        )
    if path in gym.registry or re.search(r"-v\d+$|/", path):
        return None
    makers = [key for key, value in vars(module).items() if _may_make(value, module_name)]
    raise ValueError(f"environment {name}: {unknown(f'factory in {module_name}', path, makers)}")


def remember(env: gym.Env[Any, Any], name: str, options: dict[str, Any]) -> None:
    """Note on an environment how it was made, for `made_from`."""
    setattr(env, _MADE_FROM, {"id": name, "options": dict(options)})


def made_from(env: gym.Env[Any, Any]) -> dict[str, Any] | None:
    """The `module:...` name and options an environment was made from; None if another way, or wrapped since."""
    noted: dict[str, Any] | None = vars(env).get(_MADE_FROM)
    return noted


def is_from_here(name: str) -> bool:
    """Whether the module of `module:...` lies in the current directory, as one's own does."""
    top = name.partition(":")[0].partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    here = Path.cwd().resolve()
    return any(place is not None and Path(place).resolve().is_relative_to(here) for place in places)


def not_made(name: str, factory: Callable[..., Any] | None, options: dict[str, Any], error: Exception) -> str:
    """One line on why a maker failed; for an option that it does not take, the nearest that it does."""
    refused = re.search(r"(?:(\w+)\.)?\w+\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if isinstance(error, TypeError) and factory and refused and refused[2] in options:
        return f"environment {name}: {unknown('option', refused[2], _options_of(factory, refused[1]))}"
    if isinstance(error, ValueError) and options:
        return str(error)  # The environment's own words on a value that it refuses.
    made_with = " with " + ", ".join(f"{key}={value!r}" for key, value in options.items()) if options else ""
    said = str(error).partition(" was raised from the environment creator")[0]
    return f"environment {name} could not be made{made_with}: {type(error).__name__}: {said}"


def _imported(module_name: str, name: str) -> ModuleType:
    if module_name.endswith(".py") or "/" in module_name:
        right = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise ValueError(f"environment {name}: name the module, not its file: {right}:{name.partition(':')[2]}")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise ModuleNotFoundError(
                f"environment {name}: there is no module {error.name!r}. Run this where {error.name}.py is, "
                "or install its package."
            ) from None
        raise ModuleNotFoundError(f"environment {name}: {module_name} imports what is missing: {error}") from error
    except Exception as error:
        raise ValueError(
            f"environment {name}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error


def _may_make(value: Any, module_name: str) -> bool:
    """Whether something in a module could be meant as a maker of environments."""
    own = getattr(value, "__module__", None) == module_name
    return own and (inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, gym.Env)))


def _options_of(factory: Callable[..., Any], refuser: str | None) -> list[str]:
    """The names that a maker takes, and those of the class that refused one, if the maker passes options on to it."""
    makers = [factory]
    passed_on = getattr(sys.modules.get(factory.__module__), refuser or "", None)
    if inspect.isclass(passed_on) and passed_on is not factory:
        makers.append(passed_on)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [p for maker in makers for p in inspect.signature(maker).parameters.values()]
    return sorted({p.name for p in parameters if p.kind in named})
