"""User environments by name: `module:factory`, where `factory` is a class or function that creates one."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium as gym

from steadyrl.base.names import unknown

_ORIGIN = "_steadyrl_origin"


def find_factory(name: str) -> Callable[..., Any] | None:
    """The factory that `module:factory` names; None for an id, including Gymnasium's form `module:Env-v0`.

    The module is imported in both cases, so that it can register its ids.
    """
    if ":" not in name:
        return None
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise ValueError(f"environment {name!r}: name a module and, after the colon, a class or function in it.")
    module = _import_module(module_name, name)
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    if found is not None:
        raise ValueError(
            f"environment {name}: {path} in {module_name} is a {type(found).__name__}. "
            "Name a class or function that creates the environment."
        )
    if path in gym.registry or re.search(r"-v\d+$|/", path):
        return None
    factories = [key for key, value in vars(module).items() if _is_factory(value, module_name)]
    raise ValueError(f"environment {name}: {unknown(f'factory in {module_name}', path, factories)}")


def set_origin(env: gym.Env[Any, Any], name: str, options: dict[str, Any]) -> None:
    """Record how an environment was created, for `origin_of`."""
    setattr(env, _ORIGIN, {"id": name, "options": dict(options)})


def origin_of(env: gym.Env[Any, Any]) -> dict[str, Any] | None:
    """The `module:...` name and options an environment was created from; None if there are none, or it was wrapped."""
    origin: dict[str, Any] | None = vars(env).get(_ORIGIN)
    return origin


def creation_error(name: str, factory: Callable[..., Any] | None, options: dict[str, Any], error: BaseException) -> str:
    """A one-line message for a factory that failed; for an unknown option, with the nearest known one."""
    rejected = re.search(r"(?:(\w+)\.)?\w+\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if isinstance(error, TypeError) and factory and rejected and rejected[2] in options:
        return f"environment {name}: {unknown('option', rejected[2], _options_of(factory, rejected[1]))}"
    if isinstance(error, ValueError) and options:
        # The environment explains which value it rejects, if it is well written.
        return str(error) if any(key in str(error) for key in options) else f"environment {name}: {error}"
    with_options = " with " + ", ".join(f"{key}={value!r}" for key, value in options.items()) if options else ""
    message = str(error).partition(" was raised from the environment creator")[0]
    return f"environment {name} could not be created{with_options}: {type(error).__name__}: {message}"


def _import_module(module_name: str, name: str) -> ModuleType:
    if module_name.endswith(".py") or "/" in module_name:
        module = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise ValueError(f"environment {name}: name the module, not its file: {module}:{name.partition(':')[2]}")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise ModuleNotFoundError(
                f"environment {name}: there is no module {error.name!r}. Run this where {error.name}.py is, "
                "or install its package."
            ) from None
        raise ModuleNotFoundError(f"environment {name}: {module_name} imports a missing module: {error}") from error
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"environment {name}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error


def _is_factory(value: Any, module_name: str) -> bool:
    """Whether something defined in a module could be a factory of environments."""
    own = getattr(value, "__module__", None) == module_name
    return own and (inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, gym.Env)))


def _options_of(factory: Callable[..., Any], class_name: str | None) -> list[str]:
    """The options of a factory, and those of the class `class_name` if the factory passes its options to that."""
    callables = [factory]
    cls = getattr(sys.modules.get(factory.__module__), class_name or "", None)
    if inspect.isclass(cls) and cls is not factory:
        callables.append(cls)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [p for one in callables for p in inspect.signature(one).parameters.values()]
    return sorted({p.name for p in parameters if p.kind in named})
