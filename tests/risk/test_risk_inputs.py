"""What `steadyrl.risk` takes and returns: NumPy and JAX arrays, leading axes, compiled or not; and errors that help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from risk_functions import FUNCTIONS, VALUES, WEIGHTS, every_function, every_value, every_weight, named

from steadyrl import risk

# Arrays in, arrays out.


@every_function
def test_numpy_lists_and_whole_numbers_give_64_bits(name):
    expected = FUNCTIONS[name](np.array([3.0, 1, 2, 5]))
    as_float32 = np.array([3, 1, 2, 5], np.float32)
    for returns in ([3, 1, 2, 5], (3.0, 1.0, 2.0, 5.0), np.array([3, 1, 2, 5]), as_float32):
        got = FUNCTIONS[name](returns)
        assert isinstance(got, np.ndarray if name in WEIGHTS else np.float64)
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, expected)


@every_function
@named("dtype", [jnp.float32, jnp.int32])
def test_jax_arrays_stay_jax_arrays(name, dtype):
    got = FUNCTIONS[name](jnp.array([3, 1, 2, 5], dtype))
    assert isinstance(got, jax.Array)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, FUNCTIONS[name]([3, 1, 2, 5]), rtol=1e-6, atol=1e-6)


@every_value
def test_many_returns_in_jax(name):
    # 50,000^2 pairs are more than a 32-bit whole number can count.
    R = jnp.arange(50_000) / 50_000
    np.testing.assert_allclose(VALUES[name](R), VALUES[name](np.asarray(R)), rtol=1e-4)


@every_function
def test_leading_axes_are_a_loop(name):
    R = np.random.default_rng(6).normal(size=(2, 3, 7))
    batched = FUNCTIONS[name](R)
    assert batched.shape == ((2, 3, 7) if name in WEIGHTS else (2, 3))
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(batched[index], FUNCTIONS[name](R[index]), rtol=1e-13)


@every_weight
def test_leading_axes_of_masks_and_ratios_are_a_loop(name):
    rng = np.random.default_rng(7)
    R, rho = rng.normal(size=(5, 8)), rng.uniform(0.5, 2, size=(5, 8))
    where = rng.permuted(np.tile(np.arange(8) < 5, (5, 1)), axis=-1)
    more = {"ratios": rho} if name in ("gini_weights_unbiased", "double_sampling_weights") else {}
    batched = WEIGHTS[name](R, where, **more)
    shared = WEIGHTS[name](R, where[0])
    for i in range(5):
        single = WEIGHTS[name](R[i], where[i], **{key: value[i] for key, value in more.items()})
        np.testing.assert_allclose(batched[i], single, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(shared[i], WEIGHTS[name](R[i], where[0]), rtol=1e-12, atol=1e-14)


@every_function
def test_jit_and_vmap_equal_eager(name):
    R = np.random.default_rng(8).normal(size=(4, 9))
    eager = FUNCTIONS[name](R)
    for transformed in (jax.jit(FUNCTIONS[name]), jax.jit(jax.vmap(FUNCTIONS[name]))):
        np.testing.assert_allclose(transformed(jnp.asarray(R)), eager, rtol=1e-5, atol=1e-5)


@named("name", [name for name in FUNCTIONS if name != "double_sampling_weights"])
def test_large_returns_keep_their_digits(name):
    # Sixty-fourths are exact around 1e9, so nothing may be lost but the last digits of the result.
    R = np.random.default_rng(9).integers(-500, 500, size=30) / 64
    far = 2.0**30
    expected = FUNCTIONS[name](R) + {"cvar": far, "entropic_risk": -far}.get(name, 0)
    np.testing.assert_allclose(FUNCTIONS[name](R + far), expected, rtol=1e-13, atol=1e-12)


# Errors.


@every_function
@named(
    ("returns", "message"),
    [
        ([], r"0 returns in an input of shape \(0,\): .* at least 2 .* Collect more episodes"),
        (3.0, r"0 returns in an input of shape \(\)"),
        ([1.0], r"1 return in an input of shape \(1,\)"),
        (np.ones((5, 1)), r"1 return in an input of shape \(5, 1\): .* along the last axis"),
        ([1.0, np.nan, 2.0], "the return at index 1 is nan: .* finite returns. Look for the episode"),
        ([1.0, 2.0, -np.inf], "the return at index 2 is -inf"),
        ([[1.0, 2.0], [np.inf, 3.0]], r"the return at index \(1, 0\) is inf"),
    ],
    ids=["empty", "scalar", "one", "one column", "nan", "inf", "inf in a batch"],
)
@named("as_jax", [False, True], ids=["numpy", "jax"])
def test_returns_that_cannot_be_measured(name, returns, message, as_jax):
    with pytest.raises(ValueError, match=message):
        FUNCTIONS[name](jnp.asarray(returns) if as_jax else returns)


@named("alpha", [0, -0.1, 1.5, np.nan])
def test_wrong_share_of_the_tail(alpha):
    with pytest.raises(ValueError, match=f"alpha={alpha}: .* 0 < alpha <= 1"):
        risk.cvar([1.0, 2.0], alpha)


@every_weight
@named("where", [[True, False, False], [False, False, False], [[True, True, False], [False, False, True]]])
def test_too_few_selected(name, where):
    fewest = np.sum(where, axis=-1).min()
    with pytest.raises(ValueError, match=f"where= selects {fewest} of 3 returns: at least 2 are needed. Select more"):
        WEIGHTS[name](np.broadcast_to([1.0, 2.0, 3.0], np.shape(where)), where)


@every_function
def test_values_are_not_checked_while_tracing(name):
    # Inside a compiled program values are not known yet; shapes are, and are still refused.
    traced = jax.make_jaxpr(FUNCTIONS[name])
    traced(jnp.array([1.0, jnp.nan, 2.0]))
    with pytest.raises(ValueError, match="1 return in an input"):
        traced(jnp.ones(1))
    if name in WEIGHTS:
        traced(jnp.arange(3.0), jnp.array([True, False, False]))
