"""Logits and values of actions that are not allowed: so low that these actions are never taken."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LOWEST = np.float32(-1e9)
"""Finite: the probability is 0 all the same, and 0 times its logarithm is 0 rather than not a number."""


def masked(x: Any, allowed: Any) -> Any:
    """`x` [..., A] where `allowed`, else `LOWEST`; `x` itself if `allowed` is None. In NumPy or in JAX."""
    if allowed is None:
        return x
    return (jnp if isinstance(x, jax.Array) else np).where(allowed, x, LOWEST)
