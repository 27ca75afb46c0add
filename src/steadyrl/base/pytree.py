"""Frozen dataclasses as JAX pytrees: numbers are leaves, everything else is part of the structure.

A compiled function takes such an object as an ordinary argument. Objects that differ in their numbers alone share one
compiled program, and can be stacked and mapped over with `jax.vmap`.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar

import jax

T = TypeVar("T")
_LEAF = "leaf"
Leaf = Annotated[T, _LEAF]
"""The type of a field that is a child of the pytree: a number, or another pytree."""

Children = Callable[[type], list[str]]
"""From a class to the names of the fields that are children of the pytree."""


def register_pytree(cls: type, children: Children | None = None) -> None:
    """Register a frozen dataclass; by default the fields annotated `Leaf[...]` are children, the others static.

    Objects are rebuilt without `__init__`: inside a compiled function leaves are tracers, which cannot be validated.
    """
    names = cache(lambda: _split(cls, (children or _annotated)(cls)))

    def flatten(obj: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(tuple(getattr(obj, name) for name in part) for part in names())  # type: ignore[return-value]

    def unflatten(static: tuple[Any, ...], leaves: Any) -> Any:
        obj: Any = object.__new__(cls)
        for part, values in zip(names(), (leaves, static), strict=True):
            for name, value in zip(part, values, strict=True):
                object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def _annotated(cls: type) -> list[str]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [f.name for f in dataclasses.fields(cls) if _LEAF in typing.get_args(hints[f.name])[1:]]


def _split(cls: type, children: list[str]) -> tuple[list[str], list[str]]:
    return children, [field.name for field in dataclasses.fields(cls) if field.name not in children]
