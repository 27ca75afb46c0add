"""Gymnasium spaces: which ones agents support, conversion of observations to features, and serialization."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from steadyrl.base.shown import shown
from steadyrl.envs.images import is_image, is_large_image

OBSERVATIONS = "Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these"
ACTIONS = "Discrete, MultiDiscrete, MultiBinary, or Box of floats"
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
    _check(action_space, "action", is_choice(action_space) or is_real(action_space), ACTIONS)


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
    if isinstance(space, Dict | Tuple):
        return len(space) > 0 and all(_is_observable(part) for _, part in parts_of(space))
    numbers = isinstance(space, Box | MultiDiscrete | MultiBinary)
    return isinstance(space, Discrete) or (numbers and math.prod(space.shape or ()) > 0)


def is_choice(space: gym.Space[Any]) -> bool:
    """Whether its elements are one or several choices among numbered ones."""
    several = isinstance(space, MultiDiscrete | MultiBinary)
    return isinstance(space, Discrete) or (several and math.prod(space.shape or ()) > 0)


def choices(space: gym.Space[Any]) -> tuple[int, ...]:
    """How many there are to choose from, for each choice of an action: (n,) for Discrete(n), () for a Box."""
    if isinstance(space, Box):
        return ()
    if isinstance(space, Discrete):
        return (int(space.n),)
    if isinstance(space, MultiBinary):
        return (2,) * math.prod(space.shape)
    assert isinstance(space, MultiDiscrete)
    return tuple(map(int, space.nvec.ravel()))


def parts_of(space: Dict | Tuple[Any]) -> list[tuple[Any, gym.Space[Any]]]:
    """The parts of a Dict or Tuple with their keys, in the order of the network's inputs."""
    return list(space.items()) if isinstance(space, Dict) else list(enumerate(space.spaces))


def is_real(space: gym.Space[Any]) -> bool:
    """Whether it holds arrays of real numbers."""
    return isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and math.prod(space.shape) > 0


def feature_count(space: gym.Space[Any]) -> int:
    """The number of inputs of a network for these observations."""
    return int(gym.spaces.flatdim(space))


def features(space: gym.Space[Any], observations: Any) -> Any:
    """[k, feature_count]: the inputs of a network for k observations from a simulator, in float32.

    Discrete numbers are one-hot, pixels from 0 to 1. Only large images stay bytes (`keeps_bytes`): networks scale them.
    """
    if isinstance(space, Discrete):
        one_hot = np.zeros((len(observations), int(space.n)), np.float32)
        one_hot[np.arange(len(observations)), np.asarray(observations) - int(space.start)] = 1
        return one_hot
    if isinstance(space, MultiDiscrete):
        return _one_hot_rows(space, np.asarray(observations).reshape(len(observations), -1))
    if space.dtype == np.uint8 and keeps_bytes(space):
        return np.asarray(observations, np.uint8).reshape(len(observations), -1)
    rows = np.asarray(observations, np.float32).reshape(len(observations), -1)
    return rows / np.float32(255) if is_image(space) else rows


def keeps_bytes(space: gym.Space[Any]) -> bool:
    """Whether features are bytes from 0 to 255: in memory an image is a quarter of what it would be as floats."""
    return is_large_image(space)


def _one_hot_rows(space: MultiDiscrete, rows: Any) -> Any:
    """[k, d] to [k, sum of nvec]: each number one-hot."""
    numbers = space.nvec.ravel().astype(np.int64)
    one_hot = np.zeros((len(rows), int(numbers.sum())), np.float32)
    places = np.cumsum(numbers) - numbers + rows.astype(np.int64) - space.start.ravel()
    one_hot[np.arange(len(rows))[:, None], places] = 1
    return one_hot


def _part_features(space: gym.Space[Any], observations: Any) -> Any:
    """`features` of a part of an observation: in float32, with pixels from 0 to 1."""
    rows = features(space, observations)
    return rows / np.float32(255) if rows.dtype == np.uint8 else rows


def outside(space: gym.Space[Any], observations: Any) -> Any:
    """[k] bool: which of k observations are out of the range of a Discrete or MultiDiscrete; None for other spaces."""
    if isinstance(space, Discrete):
        return (observations < space.start) | (observations >= space.start + space.n)
    if isinstance(space, MultiDiscrete):
        observations = np.stack(observations) if observations.dtype == object else observations
        wrong = (observations < space.start) | (observations >= space.start + space.nvec)
        return wrong.reshape(len(wrong), -1).any(axis=1)
    return None


def stackable(space: gym.Space[Any]) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of one observation in a simulator's arrays, where those of a Dict or Tuple are flattened."""
    if isinstance(space, Dict | Tuple):
        return (feature_count(space),), np.float32
    return space.shape or (), space.dtype


def flat(space: gym.Space[Any], observation: Any) -> Any:
    """One observation as a row of a simulator's array."""
    if not isinstance(space, Dict | Tuple):
        return observation
    return np.concatenate([_flat_part(part, observation[key]) for key, part in _matching(space, observation)])


def _flat_part(space: gym.Space[Any], observation: Any) -> Any:
    """[feature_count]: a part of one observation. Its numbers are checked: a negative one would count from the end."""
    row = np.asarray(flat(space, observation))[None]
    wrong = outside(space, row)
    if wrong is not None and wrong.any():
        raise ValueError(f"{shown(observation)} is not in {space}")
    return _part_features(space, row)[0]


def _matching(space: Dict | Tuple[Any], observation: Any) -> list[tuple[Any, gym.Space[Any]]]:
    """`parts_of` the space, if a Tuple has as many observations."""
    parts = parts_of(space)
    if isinstance(space, Tuple) and len(observation) != len(parts):
        raise ValueError(f"{len(observation)} parts instead of {len(parts)}")
    return parts


def flat_rows(space: gym.Space[Any], observations: Any) -> Any:
    """[k, ...]: k observations of a vector environment as rows of a simulator's array."""
    if isinstance(space, Dict | Tuple):
        matching = _matching(space, observations)
        return np.concatenate([_part_features(part, flat_rows(part, observations[key])) for key, part in matching], 1)
    return np.asarray(observations)


def as_batch(space: gym.Space[Any], observation: Any) -> tuple[Any, tuple[int, ...]]:
    """One observation, or an array of them of any shape, as rows [k, ...]; and that shape, () for one."""
    if isinstance(space, Dict | Tuple):
        parts = [(part, *as_batch(part, observation[key])) for key, part in _matching(space, observation)]
        shapes = {leading for _, _, leading in parts}
        if len(shapes) > 1:
            raise ValueError(f"the parts of the observation are for different numbers of observations: {shapes}.")
        return np.concatenate([_part_features(part, rows) for part, rows, _ in parts], axis=1), shapes.pop()
    array = np.asarray(observation)
    shape = space.shape or ()
    leading = array.shape[: array.ndim - len(shape)]
    fits = array.shape[len(leading) :] == shape and array.ndim >= len(shape)
    if fits and isinstance(space, Discrete | MultiDiscrete):
        fits = np.issubdtype(array.dtype, np.integer) and not np.any(outside(space, array.reshape(-1, *shape)))
    if not fits:
        raise ValueError(
            f"observation {shown(observation)} is not in {shown_space(space)}: pass one that is, or an array of such."
        )
    return array.reshape(-1, *shape), leading


def as_masks(space: gym.Space[Any], masks: Any, shape: tuple[int, ...]) -> Any:
    """[k, A] bool: action masks for observations of some shape; an error for one that allows no action."""
    numbers = choices(space)
    array = np.asarray(masks)
    if not numbers:
        raise ValueError(f"action_mask: actions in {shown_space(space)} have none. Leave it out.")
    if array.shape != (*shape, sum(numbers)):
        raise ValueError(
            f"action_mask of shape {array.shape}: there are {sum(numbers)} actions, so its shape is "
            f"{(*shape, sum(numbers))}."
        )
    rows = array.reshape(-1, sum(numbers)) > 0
    if not allows(space, rows).all():
        raise ValueError(f"action_mask={shown(masks)}: it allows no action. Allow at least one.")
    return rows


def allows(space: gym.Space[Any], masks: Any) -> Any:
    """[k] bool: whether a mask [k, A] allows an action, with something for each of several choices."""
    starts = np.cumsum((0, *choices(space)[:-1]))
    return np.logical_or.reduceat(masks, starts, axis=1).all(axis=1)


def same_spaces(ours: gym.Space[Any], others: gym.Space[Any]) -> bool:
    """Whether two spaces are equal, including the order of a Dict, which Gymnasium ignores."""
    return to_json(ours) == to_json(others) if type(ours) is type(others) else False


def to_json(space: gym.Space[Any]) -> dict[str, Any]:
    """A space that passed `check_spaces`, as plain data."""
    if isinstance(space, Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        numbers = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"kind": "MultiDiscrete", **numbers, "dtype": str(space.dtype)}
    if isinstance(space, MultiBinary):
        return {"kind": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, Tuple):
        return {"kind": "Tuple", "spaces": [to_json(part) for part in space.spaces]}
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
    if described["kind"] == "Tuple":
        return Tuple([_from_json(part, depth + 1) for part in described["spaces"]])
    if described["kind"] in ("MultiDiscrete", "MultiBinary"):
        return _several_choices(described)
    if described["kind"] != "Box" or described["dtype"] not in _DTYPES:  # NumPy has types of any size.
        raise ValueError(described["kind"])
    dtype, shape = np.dtype(described["dtype"]), tuple(described["shape"])
    low, high = (np.array([float(x) for x in described[name]]).astype(dtype).reshape(shape) for name in ("low", "high"))
    return Box(low, high, dtype=dtype.type)


def _several_choices(described: Any) -> gym.Space[Any]:
    if described["kind"] == "MultiBinary":
        shape = described["shape"]
        if not all(type(x) is int and 0 < x <= _MAX_DISCRETE for x in shape) or math.prod(shape) > _MAX_DISCRETE:
            raise ValueError(shape)
        return MultiBinary(shape)
    nvec, start = (np.array(described[name]) for name in ("nvec", "start"))
    whole = nvec.dtype.kind == start.dtype.kind == "i" and nvec.shape == start.shape and nvec.size > 0
    if not whole or nvec.min() < 1 or max(nvec.max(), abs(start).max()) > _MAX_DISCRETE:
        raise ValueError(nvec)
    if described["dtype"] not in _DTYPES:
        raise ValueError(described["dtype"])
    return MultiDiscrete(nvec, dtype=described["dtype"], start=start)
