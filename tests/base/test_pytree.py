"""Frozen dataclasses as pytrees: what is a leaf, what is structure, and that compiled functions can rebuild them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.base.settings import Settings, setting


@dataclass(frozen=True)
class Inner:
    rate: Leaf[float]
    name: str


@dataclass(frozen=True)
class Outer:
    size: int
    inner: Leaf[Inner]
    scale: Leaf[float] = 2.0

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError("a tracer could not be compared")


register_pytree(Inner)
register_pytree(Outer)


def test_leaves_are_the_annotated_fields_and_the_rest_is_structure():
    one = Outer(3, Inner(0.5, "a"))
    assert jax.tree.leaves(one) == [0.5, 2.0]
    assert jax.tree.map(lambda x: 2 * x, one) == Outer(3, Inner(1.0, "a"), 4.0)
    assert jax.tree.structure(one) == jax.tree.structure(Outer(3, Inner(7.0, "a"), 9.0))
    assert jax.tree.structure(one) != jax.tree.structure(Outer(4, Inner(0.5, "a")))
    assert jax.tree.structure(one) != jax.tree.structure(Outer(3, Inner(0.5, "b")))


def test_one_program_for_all_numbers():
    @jax.jit
    def scaled(outer):
        assert isinstance(outer, Outer)
        return jnp.full(outer.size, outer.inner.rate) * outer.scale

    np.testing.assert_array_equal(scaled(Outer(2, Inner(0.5, "a"))), [1, 1])
    np.testing.assert_array_equal(scaled(Outer(2, Inner(3.0, "a"), 0.5)), [1.5, 1.5])
    assert scaled._cache_size() == 1
    assert scaled(Outer(3, Inner(0.5, "a"))).shape == (3,)
    assert scaled._cache_size() == 2


def test_objects_can_be_stacked_and_mapped_over():
    many = jax.tree.map(lambda *x: jnp.stack(x), *(Outer(2, Inner(float(k), "a"), 10.0 * (k + 1)) for k in range(3)))
    np.testing.assert_array_equal(jax.vmap(lambda one: one.inner.rate + one.scale)(many), [10, 21, 32])


def test_of_settings_the_floats_are_leaves():
    @dataclass(frozen=True)
    class Own(Settings):
        rate: float = setting(0.5, "A number.", above=0)
        count: int = setting(3, "A whole number.")
        limit: float | None = setting(None, "A number or None, which decides what is compiled.")
        kind: str = setting("a", "A choice.")

    assert jax.tree.leaves(Own(rate=2)) == [2.0]
    rebuilt = jax.tree.map(lambda x: -x, Own())
    assert rebuilt.rate == -0.5, "inside a program bounds are not checked"
    with pytest.raises(ValueError, match="above 0"):
        Own(rate=-0.5)
