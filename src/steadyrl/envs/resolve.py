"""From what a user passes as `env` (an id, an environment or a factory) to a Gymnasium environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, get_env_id, load_env_creator, parse_env_id

from steadyrl.base.names import nearest, plain
from steadyrl.envs.factory_path import creation_error, find_factory, set_origin
from steadyrl.envs.jax_gymnasium import JaxEnvironment
from steadyrl.envs.jax_libraries import GYMNAX, as_jax_model, make_gymnax
from steadyrl.envs.options import checked_options

EnvLike = str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]]


def resolve(env: EnvLike, /, **options: Any) -> gym.Env[Any, Any]:
    """The environment that `env` names, is, or creates.

    A name is a Gymnasium id, `gymnax:` and an id of gymnax, or `module:factory` with a class or function that creates
    the environment. `options` are passed to the factory, and are only accepted with a name. A JAX environment is taken
    as a `JaxEnvironment`.
    """
    if isinstance(env, str):
        return _make(env, checked_options(env, options))
    if options:
        raise ValueError(f"environment options {sorted(options)} need an environment id; set them on {env} itself.")
    if isinstance(env, gym.Env):
        return env
    in_jax = _in_jax(env)
    if in_jax is not None:
        return in_jax
    if callable(env):
        made = env()
        made = made if isinstance(made, gym.Env) else _in_jax(made) or made
        if isinstance(made, gym.Env):
            return made
        raise TypeError(f"the environment factory returned {type(made).__name__}, not a gymnasium.Env.")
    raise TypeError(
        f"env is a {type(env).__name__}: pass a Gymnasium id, an Env, a function that creates one, or a JAX "
        "environment with reset(key), step(key, state, action), observation_space, action_space and horizon."
    )


def _in_jax(env: Any) -> JaxEnvironment | None:
    model = as_jax_model(env)
    return None if model is None else JaxEnvironment(model)


def _make(name: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    factory = None if name.startswith(GYMNAX) else find_factory(name)
    if name.startswith(GYMNAX):
        env: gym.Env[Any, Any] = JaxEnvironment(make_gymnax(name, options))
    elif factory is None:
        env = _make_registered(name.rsplit(":", 1)[-1], options)
    else:
        env = _made_by(factory, name, options)
    if ":" in name:
        # Not in `env.spec`, whose id does not contain the module.
        set_origin(env, name, options)
    return env


def _made_by(factory: Callable[..., Any], name: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    try:
        made = factory(**options)
    except (Exception, SystemExit) as error:
        raise ValueError(creation_error(name, factory, options, error)) from error
    env = made if isinstance(made, gym.Env) else _in_jax(made)
    if env is None:
        raise ValueError(
            f"environment {name}: it returned {_describe(made)}, not a gymnasium.Env. Return the environment."
        )
    return env


def _make_registered(name: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    versioned = _versioned(name)
    try:
        return gym.make(versioned, **options)
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound, gym.error.VersionNotFound):
        raise ValueError(_unknown_id(name)) from None
    except gym.error.DependencyNotInstalled as error:
        extra = _extra_of(versioned)
        remedy = f"{name} needs {extra}, which is not installed: pip install 'steadyrl[{extra}]'"
        raise ModuleNotFoundError(remedy if extra else f"environment {name}: {error}") from error
    except gym.error.Error as error:
        raise ValueError(f"environment {name}: {error}") from error
    except (Exception, SystemExit) as error:
        creator = _creator(versioned) if isinstance(error, TypeError) else None
        raise ValueError(creation_error(name, creator, options, error)) from error


def _versioned(name: str) -> str:
    """The id itself, or its latest version if it has none."""
    try:
        namespace, bare, version = parse_env_id(name)
    except gym.error.Error:
        raise ValueError(
            f"environment {name!r} is not an id: ids look like CartPole-v1 and steadyrl/GuardedMaze-v0, "
            "and your own environment is module:factory."
        ) from None
    latest = find_highest_version(namespace, bare) if version is None else None
    return name if latest is None else get_env_id(namespace, bare, latest)


def _unknown_id(name: str) -> str:
    """A one-line message for an id that is not registered, with the id that was probably meant."""
    namespace, bare, _ = parse_env_id(name)
    latest = {get_env_id(ns, n, find_highest_version(ns, n)) for ns, n, _ in map(parse_env_id, gym.registry)}
    containing = [known for known in latest if plain(bare) in plain(known)]
    # Ours first, then the shortest.
    containing.sort(key=lambda known: (not known.startswith("steadyrl/"), len(known), known))
    same = [known for known in containing if plain(parse_env_id(known)[1]) == plain(bare)]
    spaces = {parse_env_id(known)[0] for known in gym.registry}
    foreign = namespace is not None and namespace not in spaces
    near = next(iter([*same, *containing]), None) or nearest(name, latest, cutoff=0.8 if foreign else 0.6)
    if near is not None:
        return f"unknown environment {name!r}. Did you mean {near!r}?"
    if foreign:
        module = {"ALE": "ale_py", "ale": "ale_py"}.get(str(namespace), "MODULE")
        package = "ale-py" if module == "ale_py" else "the package that provides it"
        return (
            f"unknown environment {name!r}: no installed package registers {namespace}/. "
            f"Install {package}, and name its module too: {module}:{name}"
        )
    ours = ", ".join(sorted(known for known in latest if known.startswith("steadyrl/")))
    return (
        f"unknown environment {name!r}. Pass a Gymnasium id such as CartPole-v1, one of ours ({ours}), "
        "or your own as module:factory."
    )


def _creator(name: str) -> Callable[..., Any]:
    entry_point = gym.spec(name).entry_point
    creator: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    return creator  # type: ignore[no-any-return]


def _extra_of(name: str) -> str | None:
    """The extra of steadyrl that installs the dependencies of one of Gymnasium's environments; None for others."""
    found = re.search(r"gymnasium\.envs\.(box2d|mujoco)", str(gym.spec(name).entry_point))
    return found[1] if found else None


def _describe(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
