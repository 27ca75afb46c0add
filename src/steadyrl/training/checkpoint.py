"""The file format of agents: safetensors, with everything that is not an array as JSON in its header.

Loading never runs code from the file. The format knows agents by what the training loop knows of them; `steadyrl.load`
makes the agent that a file names.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from steadyrl.base.files import write_atomic
from steadyrl.envs import spaces
from steadyrl.envs.description import describe_env
from steadyrl.training.algorithm import Trainee

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
FORMAT = 1
"""Raised when a file written now could not be read by older code."""


class AgentFile(NamedTuple):
    """The content of a file."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, Any]


def write(
    agent: Trainee,
    path: str | os.PathLike[str],
    replay_buffer: bool = True,
    note: Mapping[str, Any] | None = None,
) -> None:
    """Write an agent to `path` atomically: an older file there is intact until the new one is complete.

    A `note`, plain data, is stored in the file for `restore`.
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
    # safetensors silently writes non-contiguous arrays wrongly.
    arrays = {name: np.asarray(x, order="C") for name, x in _named(agent.learner).items()}
    if replay_buffer and agent.replay_buffer is not None:
        arrays |= {_ROWS: agent.replay_buffer.rows, _ADDED: np.array(agent.replay_buffer.added)}
    write_atomic(Path(path), save(arrays, metadata={"steadyrl": json.dumps(header)}))


def read(path: str | os.PathLike[str]) -> AgentFile:
    """The content of a file."""
    path = Path(path)
    header = read_header(path)
    with safe_open(path, framework="numpy") as file:
        return AgentFile(path, header, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Everything in a file but the arrays."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["steadyrl"])
        if header["format"] > FORMAT:
            raise ValueError(f"{path} was written by a newer steadyrl (format {header['format']}): upgrade.")
        return {name: header[name] for name in _HEADER} | {_NOTE: header.get(_NOTE, {})}
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{path} is no steadyrl agent, or only a part of one.") from None


def read_note(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The note that an agent was written with."""
    return dict(read_header(path)[_NOTE])


def restore(agent: Trainee, file: AgentFile) -> dict[str, Any]:
    """Bring an untrained agent with the same settings to the state in the file; returns the file's note."""
    path, header, arrays = file.path, file.header, dict(file.arrays)
    rows, added = arrays.pop(_ROWS, None), arrays.pop(_ADDED, 0)
    expected = _named(agent.learner)
    if {n: x.shape for n, x in expected.items()} != {n: x.shape for n, x in arrays.items()}:
        raise ValueError(f"{path} does not hold the parameters of a {header['agent']} agent: it was altered.")
    structure = jax.tree.structure(agent.learner)
    agent.learner = jax.tree.unflatten(structure, [jnp.asarray(arrays[name]) for name in expected])
    if agent.replay_buffer is not None and rows is not None:
        if rows.shape != agent.replay_buffer.shape_after(added):
            raise ValueError(f"{path} does not hold the replay buffer of a {header['agent']} agent: it was altered.")
        agent.replay_buffer.restore(rows, int(added))
    agent.iterations, agent.episodes, agent.timesteps = (header[k] for k in ("iterations", "episodes", "timesteps"))
    return dict(header[_NOTE])


def _named(learner: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path, simple=True, separator="/"): x for path, x in jax.tree.leaves_with_path(learner)}
