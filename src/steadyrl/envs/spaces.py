"""Gymnasium spaces: which ones agents support, conversion of observations to features, and serialization."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from steadyrl.base.shown import shown

OBSERVATIONS = "Box, Discrete, or Dict of these"
ACTIONS = "Discrete, or Box of floats"
_MAX_DISCRETE, _MAX_DEPTH = 2**31 - 1, 20
_MAX_SHOWN = 120
_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
)
"""Of a Box in a file."""


def is_tabular(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> bool:
    """Whether policies and values can be tables over states and actions."""
    return all(isinstance(space, Discrete) and space.start == 0 for space in (observation_space, action_space))


def check_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
    """Raise an error if agents do not support one of the spaces."""
    _check(observation_space, "observation", _is_observable(observation_space), OBSERVATIONS)
    _check(action_space, "action", isinstance(action_space, Discrete) or is_real(action_space), ACTIONS)


def _check(space: gym.Space[Any], kind: str, is_supported: bool, supported: str) -> None:
    if not is_supported:
        raise ValueError(
            f"{kind} space {shown_space(space)} is not supported: it must be {supported}. Change it with a wrapper "
            "from gymnasium.wrappers, such as Transform{Observation,Action} or FlattenObservation."
        )


def shown_space(space: gym.Space[Any]) -> str:
    """A space as part of a message, not too long: of a Box with many different bounds, its shape and type."""
    if isinstance(space, Box) and len(repr(space)) > _MAX_SHOWN:
        return f"Box(shape={space.shape}, dtype={space.dtype})"
    return shown(space, _MAX_SHOWN)


def _is_observable(space: gym.Space[Any]) -> bool:
    if isinstance(space, Dict):
        return all(map(_is_observable, space.values()))
    return isinstance(space, Discrete) or (isinstance(space, Box) and math.prod(space.shape) > 0)


def is_real(space: gym.Space[Any]) -> bool:
    """Whether it holds arrays of real numbers."""
    return isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and math.prod(space.shape) > 0


def feature_count(space: gym.Space[Any]) -> int:
    """The number of inputs of a network for these observations."""
    return int(gym.spaces.flatdim(space))


def features(space: gym.Space[Any], observations: Any) -> Any:
    """[k, feature_count] float32: the inputs of a network for k observations from a simulator; pixels are scaled."""
    if isinstance(space, Discrete):
        one_hot = np.zeros((len(observations), int(space.n)), np.float32)
        one_hot[np.arange(len(observations)), np.asarray(observations) - int(space.start)] = 1
        return one_hot
    rows = np.asarray(observations, np.float32).reshape(len(observations), -1)
    return rows / np.float32(255) if is_image(space) else rows


def is_image(space: gym.Space[Any]) -> bool:
    """Whether it holds pixels from 0 to 255: networks get them from 0 to 1."""
    return isinstance(space, Box) and space.dtype == np.uint8 and bool(np.all(space.high == 255))


def stackable(space: gym.Space[Any]) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of one observation in a simulator's arrays, where Dict observations are flattened."""
    if isinstance(space, Dict):
        return (feature_count(space),), np.float32
    return space.shape or (), space.dtype


def flat(space: gym.Space[Any], observation: Any) -> Any:
    """One observation as a row of a simulator's array."""
    if not isinstance(space, Dict):
        return observation
    return np.concatenate([features(part, [flat(part, observation[name])])[0] for name, part in space.items()])


def flat_rows(space: gym.Space[Any], observations: Any) -> Any:
    """[k, ...]: k observations of a vector environment as rows of a simulator's array."""
    if isinstance(space, Dict):
        parts = [features(part, flat_rows(part, observations[name])) for name, part in space.items()]
        return np.concatenate(parts, axis=1)
    return np.asarray(observations)


def as_batch(space: gym.Space[Any], observation: Any) -> tuple[Any, tuple[int, ...]]:
    """One observation, or an array of them of any shape, as rows [k, ...]; and that shape, () for one."""
    if isinstance(space, Dict):
        parts = [(part, *as_batch(part, observation[name])) for name, part in space.items()]
        shapes = {leading for _, _, leading in parts}
        if len(shapes) > 1:
            raise ValueError(f"the parts of the observation are for different numbers of observations: {shapes}.")
        return np.concatenate([features(part, rows) for part, rows, _ in parts], axis=1), shapes.pop()
    array = np.asarray(observation)
    shape = space.shape or ()
    leading = array.shape[: array.ndim - len(shape)]
    fits = array.shape[len(leading) :] == shape and array.ndim >= len(shape)
    if isinstance(space, Discrete):
        fits = np.issubdtype(array.dtype, np.integer) and bool(
            np.all((array >= space.start) & (array < space.start + space.n))
        )
    if not fits:
        raise ValueError(
            f"observation {shown(observation)} is not in {shown_space(space)}: pass one that is, or an array of such."
        )
    return array.reshape(-1, *shape), leading


def same_spaces(ours: gym.Space[Any], others: gym.Space[Any]) -> bool:
    """Whether two spaces are equal, including the order of a Dict, which Gymnasium ignores."""
    return to_json(ours) == to_json(others) if type(ours) is type(others) else False


def to_json(space: gym.Space[Any]) -> dict[str, Any]:
    """A space that passed `check_spaces`, as plain data."""
    if isinstance(space, Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, Dict):
        return {"kind": "Dict", "spaces": {name: to_json(part) for name, part in space.items()}, "order": list(space)}
    assert isinstance(space, Box)
    # As text: JSON has no infinity, and `repr` of a float is exact.
    bounds = {name: [repr(float(x)) for x in getattr(space, name).ravel()] for name in ("low", "high")}
    return {"kind": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}


def from_json(described: Any) -> gym.Space[Any]:
    """The space from the output of `to_json`; an error for anything else, whatever it is."""
    try:
        return _from_json(described, 0)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, AssertionError):
        raise ValueError("a space is described that does not exist.") from None


def _from_json(described: Any, depth: int) -> gym.Space[Any]:
    if depth == _MAX_DEPTH:
        raise ValueError(depth)
    if described["kind"] == "Discrete":
        n, start = described["n"], described.get("start", 0)
        if not all(type(x) is int and abs(x) <= _MAX_DISCRETE for x in (n, start)):
            raise ValueError(n)
        return Discrete(n, start=start)
    if described["kind"] == "Dict":
        # As pairs: Gymnasium sorts dictionaries, and the order is that of the network's inputs.
        return Dict([(name, _from_json(part, depth + 1)) for name, part in described["spaces"].items()])
    if described["kind"] != "Box" or described["dtype"] not in _DTYPES:  # NumPy has types of any size.
        raise ValueError(described["kind"])
    dtype, shape = np.dtype(described["dtype"]), tuple(described["shape"])
    low, high = (np.array([float(x) for x in described[name]]).astype(dtype).reshape(shape) for name in ("low", "high"))
    return Box(low, high, dtype=dtype.type)
