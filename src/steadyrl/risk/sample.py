"""Input handling shared by all risk measures: conversion to an array of returns, and validation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def as_returns(returns: Any) -> tuple[ModuleType, Any]:
    """The array namespace (NumPy or jax.numpy) and the returns in it, as floats; the last axis is the sample.

    NumPy arrays, lists and scalars become float64; JAX arrays keep their float dtype. Values must be finite; this is
    not checked inside `jax.jit`, where only shapes are known.
    """
    xp: ModuleType = jnp if isinstance(returns, jax.Array) else np
    R: Any = returns if xp is jnp else np.asarray(returns, dtype=np.float64)
    if not xp.issubdtype(R.dtype, xp.floating):
        R = R.astype(float)
    n = R.shape[-1] if R.ndim else 0
    if n < 2:
        raise ValueError(
            f"{n} return{'s' * (n != 1)} in an input of shape {R.shape}: risk measures compare returns, so "
            "at least 2 are needed along the last axis. Collect more episodes."
        )
    if not isinstance(R, jax.core.Tracer) and not np.all(finite := np.isfinite(np.asarray(R))):
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"the return at index {where if len(where) > 1 else where[0]} is {np.asarray(R)[where]}: "
            "risk measures need finite returns. Look for the episode whose rewards diverged."
        )
    return xp, R


def as_mass(xp: ModuleType, R: Any, where: Any, ratios: Any = None) -> Any:
    """The mass of each return, in the shape of `R`: rho_i (1 without `ratios`) if selected by `where`, otherwise 0."""
    mass = xp.ones_like(R) if ratios is None else xp.broadcast_to(xp.asarray(ratios, dtype=R.dtype), R.shape)
    if where is None:
        return mass
    if not isinstance(where, jax.core.Tracer):
        fewest = int(np.asarray(where, dtype=bool).sum(axis=-1).min())
        if fewest < 2:
            raise ValueError(f"where= selects {fewest} of {R.shape[-1]} returns: at least 2 are needed. Select more.")
    return xp.where(xp.asarray(where, dtype=bool), mass, xp.zeros_like(R))
