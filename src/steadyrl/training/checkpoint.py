"""The file format of agents: safetensors, with everything that is not an array as JSON in its header.

Loading never runs code from the file, and compares the shapes of its arrays before it builds anything from its header.
Every array and the header have a digest, so that a damaged file is an error and not another agent. The format knows
agents by what the training loop knows of them; `steadyrl.load` makes the agent that a file names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from steadyrl.training.checkpoint_header import DIGESTS, NOTE, POLICY_ONLY, from_metadata, not_an_agent, to_metadata

_ROWS, _ADDED = "memory/rows", "memory/added"
_ACTING = ("theta", "seen")
"""The fields of a learner that a policy acts with."""
_DTYPES = ("BOOL", "U8", "U32", "I32", "I64", "F32", "F64")
"""What safetensors calls the types of arrays that agents consist of."""


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
    policy_only: bool = False,
) -> None:
    """Write an agent to `path` atomically: an older file there is intact until the new one is complete.

    A `note`, plain data, is stored in the file for `restore`. With `policy_only`, or if nothing else of the agent was
    loaded, the file has what it acts with.
    """
    policy_only = policy_only or agent.policy_only
    fields = {
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
    }
    # safetensors silently writes non-contiguous arrays wrongly.
    learned = {n: x for n, x in _named(agent.learner).items() if not policy_only or n.split("/")[0] in _ACTING}
    arrays = {name: np.asarray(x, order="C") for name, x in learned.items()}
    if replay_buffer and not policy_only and agent.replay_buffer is not None:
        arrays |= {_ROWS: agent.replay_buffer.rows, _ADDED: np.array(agent.replay_buffer.added)}
    digests = {name: _digest(array) for name, array in arrays.items()}
    write_atomic(Path(path), save(arrays, metadata=to_metadata(fields, note, digests, policy_only)))


def read(path: str | os.PathLike[str]) -> AgentFile:
    """The content of a file, if it is what was written."""
    path = Path(path)
    with _opened(path) as file:
        header = from_metadata(path, file.metadata())
        names = list(file.keys())
        if any(file.get_slice(name).get_dtype() not in _DTYPES for name in names):
            raise altered(path, header)
        arrays = {name: file.get_tensor(name) for name in names}
    digests = header[DIGESTS]
    if digests is not None:
        for name in sorted(digests.keys() | arrays.keys()):
            if name not in arrays or _digest(arrays[name]) != digests.get(name):
                raise ValueError(f"{path} is damaged: its array {name!r} is not what was written.")
    return AgentFile(path, header, arrays)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Everything in a file but the arrays."""
    path = Path(path)
    with _opened(path) as file:
        return from_metadata(path, file.metadata())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except SafetensorError:
        raise not_an_agent(path) from None


def read_note(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The note that an agent was written with."""
    return dict(read_header(path)[NOTE])


def restore(agent: Trainee, file: AgentFile) -> dict[str, Any]:
    """Bring an untrained agent with the same settings to the state in the file; returns the file's note.

    `agent.learner` may consist of shapes alone, as `jax.eval_shape` returns them. After a file with the policy alone
    the rest of it is what it was.
    """
    path, header, arrays = file.path, file.header, dict(file.arrays)
    rows, added = arrays.pop(_ROWS, None), arrays.pop(_ADDED, np.array(0))
    learner, policy_only = _named(agent.learner), header[POLICY_ONLY]
    expected = {n: x for n, x in learner.items() if not policy_only or n.split("/")[0] in _ACTING}
    if {n: (x.shape, x.dtype) for n, x in expected.items()} != {n: (x.shape, x.dtype) for n, x in arrays.items()}:
        raise altered(path, header)
    for name, array in file.arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{path} is damaged: its array {name!r} is not finite.")
    structure = jax.tree.structure(agent.learner)
    values = [jnp.asarray(arrays[name]) if name in arrays else rest for name, rest in learner.items()]
    agent.learner, agent.policy_only = jax.tree.unflatten(structure, values), policy_only
    if agent.replay_buffer is not None and rows is not None:
        buffer, with_masks = agent.replay_buffer, agent.replay_buffer.width + sum(spaces.choices(agent.action_space))
        if rows.shape[1:] == (with_masks,) and with_masks > buffer.width:
            buffer.widen(with_masks)
        wrong = rows.dtype != buffer.dtype or rows.shape != buffer.shape_after(added)
        if added.shape or added < len(rows) or wrong:
            raise ValueError(f"{path} does not hold the replay buffer of a {header['agent']} agent: it was altered.")
        agent.replay_buffer.restore(rows, int(added))
    agent.iterations, agent.episodes, agent.timesteps = (header[k] for k in ("iterations", "episodes", "timesteps"))
    return dict(header[NOTE])


def has_replay_buffer(file: AgentFile) -> bool:
    """Whether an agent was written with its replay buffer."""
    return _ROWS in file.arrays


def matching_fields(learner: Any, file: AgentFile) -> dict[str, Any]:
    """The fields of a learner that the file has in the same shapes, with its values."""
    fields = {}
    for name, value in learner._asdict().items():
        expected = {key: (x.shape, x.dtype) for key, x in _named(value, name).items()}
        found = {key: file.arrays[key] for key in file.arrays if key.split("/")[0] == name}
        if expected and expected == {key: (x.shape, x.dtype) for key, x in found.items()}:
            leaves = [jnp.asarray(found[key]) for key in expected]
            fields[name] = jax.tree.unflatten(jax.tree.structure(value), leaves)
    return fields


def altered(path: Path, header: Mapping[str, Any]) -> ValueError:
    """The error about a file whose header and arrays do not belong together."""
    return ValueError(f"{path} does not hold the parameters of a {header['agent']} agent: it was altered.")


def _digest(array: np.ndarray) -> str:
    """Of the type, the shape and every bit."""
    content = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    content.update(array.reshape(-1).data)
    return content.hexdigest()


def _named(learner: Any, within: str = "") -> dict[str, Any]:
    """The arrays of a learner, or of the field of one that it is `within`, by name."""
    named = {
        jax.tree_util.keystr(path, simple=True, separator="/"): x for path, x in jax.tree.leaves_with_path(learner)
    }
    return {f"{within}/{name}".rstrip("/"): x for name, x in named.items()} if within else named
