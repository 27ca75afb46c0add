"""Input handling shared by all risk measures: conversion to an array of returns, and validation."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Scale(NamedTuple):
    """The powers of two that extreme returns were divided by, so that sums and squares of them stay in range."""

    factor: Any = None
    """[..., 1]: one for each sample; None if no return is extreme."""

    def restore_value(self, value: Any, degree: int = 1) -> Any:
        """A value [...] of the divided returns as that of the returns; it grows with their power `degree`."""
        for _ in range(0 if self.factor is None else degree):  # One by one: the square of a factor may overflow.
            value = value * self.factor[..., 0]
        return value

    def restore_weights(self, weights: Any, degree: int = 1) -> Any:
        """The same for weights [..., n]."""
        for _ in range(0 if self.factor is None else degree):
            weights = weights * self.factor
        return weights


def as_scaled_returns(returns: Any) -> tuple[ModuleType, Any, Scale]:
    """`as_returns`, with samples of extreme returns divided by a power of two, which loses no digits.

    Inside `jax.jit` nothing is divided.
    """
    xp, R = as_returns(returns)
    if isinstance(R, jax.core.Tracer):
        return xp, R, Scale()
    values, info = np.asarray(R), np.finfo(R.dtype)
    largest = np.maximum(values.max(axis=-1, keepdims=True), -values.min(axis=-1, keepdims=True))
    extreme = (largest > 2.0 ** (info.maxexp // 3)) | ((largest < 2.0 ** -(info.maxexp // 4)) & (largest > 0))
    if not extreme.any():
        return xp, R, Scale()
    # Less than the exponents of the dtype, so that neither the factor nor its inverse is 0 or infinite.
    most = info.maxexp - 28
    exponent = np.where(extreme, np.frexp(largest)[1].clip(-most, most), 0)
    inverse, factor = (xp.asarray(np.ldexp(1.0, e), dtype=R.dtype) for e in (-exponent, exponent))
    return xp, R * inverse, Scale(factor)


def as_returns(returns: Any) -> tuple[ModuleType, Any]:
    """The array namespace (NumPy or jax.numpy) and the returns in it, as floats; the last axis is the sample.

    NumPy arrays, lists and scalars become float64; JAX arrays keep their float dtype if it has at least 32 bits.
    Values must be finite; this is not checked inside `jax.jit`, where only shapes are known.
    """
    xp: ModuleType = jnp if isinstance(returns, jax.Array) else np
    R = _as_floats(returns)
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


def _as_floats(returns: Any) -> Any:
    """The returns as an array of at least 32 bits."""
    _refuse_masked("returns", returns)
    try:
        R: Any = returns if isinstance(returns, jax.Array) else np.asarray(returns)
        if np.iscomplexobj(R):
            raise TypeError("they are complex")
        if not isinstance(R, jax.Array):
            return R.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"returns cannot be converted to floats ({error}): pass an array of real numbers.") from error
    if not jnp.issubdtype(R.dtype, jnp.floating):
        return R.astype(float)
    return R if R.dtype.itemsize >= 4 else R.astype(jnp.float32)


def _refuse_masked(name: str, values: Any) -> None:
    parts = values if isinstance(values, list | tuple) else ()
    if isinstance(values, np.ma.MaskedArray) or any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            f"{name} is a masked array, whose mask would be ignored: drop the masked entries with x.compressed()."
        )


def deviations(xp: ModuleType, R: Any) -> Any:
    """R - mean R, over the last axis; large returns that differ little keep their precision."""
    D = R - R[..., :1]
    return D - xp.mean(D, axis=-1, keepdims=True)


def as_mass(xp: ModuleType, R: Any, where: Any, ratios: Any = None) -> Any:
    """The mass of each return, in the shape of `R`: rho_i (1 without `ratios`) if selected by `where`, otherwise 0."""
    for name, values in (("where", where), ("ratios", ratios)):
        _refuse_masked(name, values)
    mass = xp.ones_like(R) if ratios is None else xp.broadcast_to(xp.asarray(ratios, dtype=R.dtype), R.shape)
    if where is None:
        return mass
    if not isinstance(where, jax.core.Tracer):
        fewest = int(np.asarray(where, dtype=bool).sum(axis=-1).min())
        if fewest < 2:
            raise ValueError(f"where= selects {fewest} of {R.shape[-1]} returns: at least 2 are needed. Select more.")
    return xp.where(xp.asarray(where, dtype=bool), mass, xp.zeros_like(R))
