"""An agent as one file: safetensors, with everything that is not an array as JSON in its header.

Loading never runs code from the file.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from steadyrl import spaces
from steadyrl.envs.factory_path import made_from
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.simulators.choose import UnfitEngineError

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

_HEADER = (
    "format",
    "agent",
    "settings",
    "seed",
    "engine",
    "env",
    "observation_space",
    "action_space",
    "iterations",
    "episodes",
    "timesteps",
)
_ROWS, _ADDED, _NOTE = "memory/rows", "memory/added", "note"
PARTIAL = ".partial"
"""How the names of files end that are not yet whole."""
FORMAT = 1
"""Raised when a file written now could not be read by the code of before."""


def write(
    agent: Agent, path: str | os.PathLike[str], memory: bool = True, note: Mapping[str, Any] | None = None
) -> None:
    """Write an agent to `path`, all or nothing: an older file there stays whole until the new one is.

    A `note`, plain data, is kept in the file for `restore`.
    """
    header = {
        "format": FORMAT,
        "agent": agent.name,
        "settings": dataclasses.asdict(agent.settings),
        "seed": agent.seed,
        "engine": agent.engine,
        "env": describe_env(agent.env),
        "observation_space": spaces.to_json(agent.observation_space),
        "action_space": spaces.to_json(agent.action_space),
        "iterations": agent.iterations,
        "episodes": agent.episodes,
        "timesteps": agent.timesteps,
        **({_NOTE: note} if note is not None else {}),
    }
    # safetensors writes non-contiguous arrays wrongly and says nothing.
    arrays = {name: np.asarray(x, order="C") for name, x in _named(agent.learner).items()}
    if memory and agent.memory is not None:
        arrays |= {_ROWS: agent.memory.rows, _ADDED: np.array(agent.memory.added)}
    write_whole(Path(path), save(arrays, metadata={"steadyrl": json.dumps(header)}))


def read(path: str | os.PathLike[str], env: AnyEnv | None = None) -> Agent:
    """The agent in a file, in `env` or else in the environment that it was saved with, if that can be made."""
    from steadyrl.agents import AGENTS

    header, arrays = _read_file(Path(path))
    agent = AGENTS[header["agent"]].__new__(AGENTS[header["agent"]])
    observation_space, action_space = (spaces.from_json(header[f"{k}_space"]) for k in ("observation", "action"))
    source = Source.of(env) if env is not None else _made_again(header["env"])
    if source.env is not None and not all(map(spaces.same_spaces, source.spaces, (observation_space, action_space))):
        raise ValueError(
            f"{path} was trained on {observation_space} and {action_space}, but this environment has "
            "{} and {}. Pass an environment with the same spaces.".format(*source.spaces)
        )
    settings = agent.settings_of(header["settings"])
    try:
        agent._set_up(source, observation_space, action_space, settings, header["seed"], header["engine"])
    except UnfitEngineError:
        # Another environment may take another engine; the same one without its engine's package leaves a policy.
        source, engine = (source, "auto") if env is not None else (Source(None, None), header["engine"])
        agent._set_up(source, observation_space, action_space, settings, header["seed"], engine)
    _take_over(agent, path, header, arrays)
    return agent


def restore(agent: Agent, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Bring an agent, made anew with the same settings, to where the one in the file was; the note in the file."""
    header, arrays = _read_file(Path(path))
    _take_over(agent, path, header, arrays)
    return dict(header[_NOTE])


def _take_over(agent: Agent, path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    rows, added = arrays.pop(_ROWS, None), arrays.pop(_ADDED, 0)
    expected = _named(agent.learner)
    if {n: x.shape for n, x in expected.items()} != {n: x.shape for n, x in arrays.items()}:
        raise ValueError(f"{path} does not hold the parameters of a {header['agent']} agent: it was altered.")
    structure = jax.tree.structure(agent.learner)
    agent.learner = jax.tree.unflatten(structure, [jnp.asarray(arrays[name]) for name in expected])
    if agent.memory is not None and rows is not None:
        if rows.shape != agent.memory.shape_after(added):
            raise ValueError(f"{path} does not hold the memory of a {header['agent']} agent: it was altered.")
        agent.memory.restore(rows, int(added))
    agent.iterations, agent.episodes, agent.timesteps = (header[k] for k in ("iterations", "episodes", "timesteps"))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks finds the old content or the new, never half of it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent} to write to.")
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with said_what_is_not_written(path):
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def said_what_is_not_written(path: Path) -> Iterator[None]:
    """An error within it, such as a full disk, becomes one that names the file."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path} could not be written: {error.strerror or error}.") from error


def describe_env(env: Any) -> dict[str, Any] | None:
    """The id and options that make an environment again; None if it was not made from an id, or was wrapped since."""
    if isinstance(env, VectorEnv) or not isinstance(env, gym.Env):  # EnvPool's are both.
        return None
    described = made_from(env)
    if described is None:
        if env.spec is None or env.spec.additional_wrappers:
            return None
        options = dict(env.spec.kwargs)
        if env.spec.max_episode_steps != gym.spec(env.spec.id).max_episode_steps:
            options["max_episode_steps"] = env.spec.max_episode_steps
        described = {"id": env.spec.id, "options": options}
    try:
        return dict(json.loads(json.dumps(described)))
    except TypeError:  # An option that is not plain data: only the user can make it again.
        return None


def note_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The note that an agent was written with."""
    return dict(_read_header(Path(path))[_NOTE])


def recorded_env(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The id and options of the environment that the agent in a file learned in, if they were known."""
    recorded: dict[str, Any] | None = _read_header(Path(path))["env"]
    return recorded


def _made_again(described: dict[str, Any] | None) -> Source:
    # A file must not choose code to run: what it says of a module and a function in it is not followed here.
    if described is None or ":" in described["id"]:
        return Source(None, None)
    try:
        return Source.of(described["id"], **described["options"])
    except (ValueError, gym.error.Error, ImportError):
        return Source(None, None)  # The policy can still be used; learning says what is missing.


def _named(learner: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path, simple=True, separator="/"): x for path, x in jax.tree.leaves_with_path(learner)}


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    header = _read_header(path)
    with safe_open(path, framework="numpy") as file:
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def _read_header(path: Path) -> dict[str, Any]:
    from steadyrl.agents import AGENTS

    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["steadyrl"])
        if header["format"] > FORMAT:
            raise ValueError(f"{path} was written by a newer steadyrl (format {header['format']}): upgrade.")
        header = {name: header[name] for name in _HEADER} | {_NOTE: header.get(_NOTE, {})}
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{path} is no steadyrl agent, or only a part of one.") from None
    if header["agent"] not in AGENTS:
        raise ValueError(f"{path} holds an agent {header['agent']!r} that this version does not know.")
    return header
