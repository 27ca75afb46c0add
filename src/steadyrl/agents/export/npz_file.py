"""A policy as a file of NumPy arrays, which `examples/run_policy.py` runs with NumPy alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from steadyrl.agents.export.plain_policy import PlainNetwork, PlainTable


def npz_file(policy: PlainNetwork | PlainTable) -> bytes:
    """The content of the file; without Python objects, so that reading it runs no code."""
    content = io.BytesIO()
    np.savez(content, **arrays_of(policy))
    return content.getvalue()


def arrays_of(policy: PlainNetwork | PlainTable) -> dict[str, Any]:
    """The arrays of the file by name."""
    if isinstance(policy, PlainTable):
        return {"actions": policy.actions, "first_state": np.int64(policy.first_state)}
    arrays: dict[str, Any] = {
        "inputs": np.array([part.name for part in policy.inputs]),
        "layers": np.int64(len(policy.layers)),
        "activation": np.array(policy.activation),
    }
    for part in policy.inputs:
        if part.one_hot is None:
            arrays[f"divisor:{part.name}"] = np.float32(part.divisor)
        else:
            arrays[f"one_hot:{part.name}"] = part.one_hot
    if policy.moments is not None:
        arrays |= {"mean": policy.moments[0], "std": policy.moments[1], "clip": np.float32(policy.clip)}
    for k, layer in enumerate(policy.layers):
        arrays |= {f"{name}_{k}": array for name, array in layer.items()}
    shape = np.array(policy.head.shape, np.int64)
    return arrays | {name: np.asarray(value) for name, value in policy.head._asdict().items()} | {"shape": shape}
