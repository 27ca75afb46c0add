"""A policy as a file of NumPy arrays, which `examples/run_policy.py` runs with NumPy alone.

The file lists the steps of the policy, each with the names of its arrays. All of them turn rows of numbers into rows,
and where numbers come from is said by arrays of columns: so the runner has no case for spaces or networks.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents.export.plain_policy import Choice, Convolutions, PlainNetwork, PlainTable, Scaled


def npz_file(policy: PlainNetwork | PlainTable) -> bytes:
    """The content of the file; without Python objects, so that reading it runs no code."""
    content = io.BytesIO()
    np.savez(content, **arrays_of(policy))
    return content.getvalue()


def arrays_of(policy: PlainNetwork | PlainTable) -> dict[str, Any]:
    """The arrays of the file by name."""
    steps = _Steps()
    if isinstance(policy, PlainTable):
        _add_table(steps, policy)
    else:
        _add_network(steps, policy)
    head = policy.head
    if isinstance(head, Choice):
        _add_choice(steps, head)
    else:
        _add_scaling(steps, head)
    dtype = head.first.dtype if isinstance(head, Choice) else head.low.dtype
    return {"steps": np.array(steps.lines), "action": np.zeros(head.shape, dtype), **steps.arrays}


class _Steps:
    """The steps of a policy in order, as lines of text, and their arrays by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrays: dict[str, Any] = {}

    def add(self, step: str, **arrays: Any) -> None:
        """One more, with its arrays in the order of its arguments; numbered if there is one of that name already."""
        names = {name: name if name not in self.arrays else f"{name}_{len(self.lines)}" for name in arrays}
        self.lines.append(" ".join((step, *names.values())))
        self.arrays |= {names[name]: np.asarray(array) for name, array in arrays.items()}


def _add_table(steps: _Steps, policy: PlainTable) -> None:
    S, outputs = policy.outputs.shape
    # One-hot rows times the table.
    steps.add("features", column=np.zeros(S, np.int32), value=policy.first_state + np.arange(S, dtype=np.float64))
    steps.add("dense", w=policy.outputs, b=np.zeros(outputs, np.float32))


def _add_network(steps: _Steps, policy: PlainNetwork) -> None:
    if policy.recurrent is not None:
        raise ValueError("a policy with a GRU has a state, which an .npz file has no place for. Export it to .onnx.")
    _add_inputs(steps, policy)
    # From the last image to the first: each puts its outputs in front.
    columns = np.arange(sum(part.features for part in policy.inputs))
    for convolutions in reversed(policy.convolutions):
        columns = _add_convolutions(steps, convolutions, columns)
    *hidden, last = policy.layers
    for layer in hidden:
        steps.add("dense", w=layer["weight"], b=layer["bias"])
        if "scale" in layer:
            steps.add("layer_norm", scale=layer["scale"], shift=layer["shift"])
        if policy.activation == "relu":
            steps.add("clip", low=np.float32(0), high=np.float32(np.inf))
        else:
            steps.add(policy.activation)
    steps.add("dense", w=last["weight"], b=last["bias"])


def _add_inputs(steps: _Steps, policy: PlainNetwork) -> None:
    """From observations to normalized inputs. The runner has the numbers of all parts in the order of their paths."""
    start, starts = 0, dict[tuple[Any, ...], int]()
    for part in sorted(policy.inputs, key=lambda part: part.path):
        starts[part.path] = start
        start += part.size
    columns, values = [], []
    for part in policy.inputs:
        own, value = (np.arange(part.size), np.full(part.size, np.nan)) if part.one_hot is None else part.one_hot
        columns.append(starts[part.path] + own)
        values.append(value)
    steps.add("features", column=np.concatenate(columns), value=np.concatenate(values).astype(np.float64))
    unit = np.concatenate([np.full(part.features, part.divisor, np.float32) for part in policy.inputs])
    mean, std = (np.zeros_like(unit), unit) if policy.moments is None else (unit * x for x in policy.moments)
    steps.add("normalize", mean=mean, std=std)
    if policy.moments is not None:
        steps.add("clip", low=np.float32(-policy.clip), high=np.float32(policy.clip))


def _add_convolutions(steps: _Steps, convolutions: Convolutions, columns: NDArray[Any]) -> NDArray[Any]:
    """Those of one image, where `columns` says which input is in each column of a row, or -1; returns the new ones."""
    inputs = np.full(columns.max() + 1, -1)
    inputs[columns[columns >= 0]] = np.flatnonzero(columns >= 0)
    pixels = convolutions.image.channels_last(inputs[None])[0]
    for layer, stride in zip(convolutions.layers, convolutions.strides, strict=True):
        side, *_, filters = layer["weight"].shape
        at = _patches(pixels, side, stride)
        rest = np.setdiff1d(np.arange(len(columns)), pixels)
        weight = layer["weight"].reshape(-1, filters)
        steps.add("convolve", at=at.reshape(-1, at.shape[-1]), w=weight, b=layer["bias"], rest=rest.astype(np.int32))
        pixels = np.arange(at[..., 0].size * filters).reshape(*at.shape[:2], filters)
        columns = np.concatenate([np.full(pixels.size, -1), columns[rest]])
        # max(x, 0) of what the convolution made; the rest stays as it is.
        low = np.where(np.arange(len(columns)) < pixels.size, 0, -np.inf)
        steps.add("clip", low=low.astype(np.float32), high=np.float32(np.inf))
    return columns


def _patches(pixels: NDArray[Any], side: int, stride: int) -> NDArray[np.int32]:
    """[h, w, side * side * channels]: the columns of the pixels [H, W, channels] that each output is made of."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (side, side), axis=(0, 1))[::stride, ::stride]
    ordered = windows.transpose(0, 1, 3, 4, 2)
    return ordered.reshape(*ordered.shape[:2], -1).astype(np.int32)


def _add_choice(steps: _Steps, head: Choice) -> None:
    choice = np.repeat(np.arange(len(head.numbers)), head.numbers)
    # The runner counts through the outputs of all choices.
    before = np.cumsum(head.numbers) - np.array(head.numbers)
    steps.add("choose", own=choice == np.arange(len(head.numbers))[:, None], first=head.first - before)


def _add_scaling(steps: _Steps, head: Scaled) -> None:
    if head.squash:
        steps.add("tanh")
    steps.add("dense", w=np.diag(head.half_range), b=head.middle)
    steps.add("clip", low=head.low, high=head.high)
