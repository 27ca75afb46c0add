"""A policy as a file of NumPy arrays, which `examples/run_policy.py` runs with NumPy alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from steadyrl.agents.export.plain_policy import Choice, PlainNetwork, PlainTable


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
        if part.states is None:
            arrays[f"divisor:{part.name}"] = np.float32(part.divisor)
        else:
            arrays[f"states:{part.name}"] = part.states
    if policy.moments is not None:
        arrays |= {"mean": policy.moments[0], "std": policy.moments[1], "clip": np.float32(policy.clip)}
    for k, (weight, bias) in enumerate(policy.layers):
        arrays |= {f"weight_{k}": weight, f"bias_{k}": bias}
    if isinstance(policy.head, Choice):
        return arrays | {"first_action": np.int64(policy.head.first)}
    return arrays | {name: np.asarray(value) for name, value in policy.head._asdict().items()}
