"""Risk functions against exact fractions: ties, two returns, huge and tiny magnitudes, in NumPy and in JAX."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from risk_functions import FUNCTIONS, every_function, named

from steadyrl import risk

# The oracles: definitions, in fractions.


def mean(R):
    return sum(R) / len(R)


def variance(R):
    return sum((x - mean(R)) ** 2 for x in R) / (len(R) - 1)


def gini_deviation(R, unbiased=True):
    n = len(R)
    return sum(abs(x - y) for x in R for y in R) / 2 / (n * (n - 1) if unbiased else n * n)


def cvar(R, alpha):
    """The mean of the lower tail, return by return until its mass is used up."""
    left = k = max(Fraction(alpha) * len(R), Fraction(1))
    total = Fraction(0)
    for x in sorted(R):
        total += min(left, 1) * x
        left -= min(left, 1)
    return total / k


def gini_weights(R):
    return [(max(R) - mean(R)) - sum(abs(x - y) for y in R) / len(R) for x in R]


def gini_weights_unbiased(R):
    n = len(R)
    w = [sum(abs(x - y) for y in R) / (n - 1) for x in R]
    return [mean(w) - x if n > 2 else Fraction(0) for x in w]


def variance_weights(R):
    s2 = mean([(x - mean(R)) ** 2 for x in R])
    return [s2 - (x - mean(R)) ** 2 for x in R]


# The samples.


SIZES = (2, 3, 8)
"""Few, because JAX compiles for each."""


def lists(elements):
    return st.sampled_from(SIZES).flatmap(lambda n: st.lists(elements, min_size=n, max_size=n))


def sample_strategy(dtype):
    """Returns of one magnitude, from tiny to huge; or of all magnitudes, with ties."""
    info = np.finfo(dtype)
    width = info.bits
    # JAX rounds numbers below the smallest normal one to 0.
    within = {"width": width, "allow_nan": False, "allow_infinity": False, "allow_subnormal": False}
    smallest, largest = info.minexp + info.nmant + 2, info.maxexp - 1
    exponents = st.one_of(st.sampled_from([smallest, 0, largest]), st.integers(smallest, largest))
    one_magnitude = st.builds(
        lambda units, exponent: [float(np.ldexp(x, exponent)) for x in units],
        lists(st.floats(-1, 1, **within).map(lambda x: round(x * 1024) / 1024)),
        exponents,
    )
    some = st.lists(st.floats(**within), min_size=1, max_size=4)
    ties = some.flatmap(lambda values: lists(st.sampled_from(values)))
    offset = st.builds(
        lambda far, near: [float(dtype(far + x)) for x in near],
        st.sampled_from([2.0**20, -(2.0**20)]),
        lists(st.integers(-8, 8)),
    )
    return st.one_of(one_magnitude, ties, offset)


KINDS = {"numpy": (np.float64, np.asarray), "jax": (np.float32, jnp.asarray)}
every_kind = named("kind", KINDS)


def check(kind, data, function, oracle, degree=1):
    """The result is within a few units in the last place of the largest return, to the power of `degree`."""
    dtype, as_array = KINDS[kind]
    R = data.draw(sample_strategy(dtype))
    exact = [Fraction(x) for x in R]
    expected = np.array(oracle(exact), object)
    with np.errstate(all="ignore"):
        got = np.asarray(function(as_array(np.array(R, dtype))))
    info = np.finfo(dtype)
    largest = max(abs(x) for x in exact)
    tolerance = 32 * len(R) * Fraction(float(info.eps)) * largest**degree + Fraction(float(info.tiny)) * len(R)
    for x, y in zip(np.ravel(got), np.ravel(expected), strict=True):
        if abs(y) + tolerance < Fraction(float(info.max)):
            assert np.isfinite(x), (R, x, float(y))
            assert abs(Fraction(float(x)) - y) <= tolerance, (R, x, float(y))


@every_kind
@given(data=st.data())
def test_gini_deviation(kind, data):
    check(kind, data, risk.gini_deviation, gini_deviation)


@every_kind
@given(data=st.data())
def test_gini_deviation_of_the_empirical_distribution(kind, data):
    check(kind, data, lambda R: risk.gini_deviation(R, unbiased=False), lambda R: gini_deviation(R, unbiased=False))


@every_kind
@given(data=st.data())
def test_variance(kind, data):
    check(kind, data, risk.variance, variance, degree=2)


@given(data=st.data())
def test_standard_deviation_squared(data):
    """Squared in fractions: a return of 1e200 has a standard deviation, but its variance is too large for a float."""
    R = data.draw(sample_strategy(np.float64))
    exact = [Fraction(x) for x in R]
    got = Fraction(float(risk.standard_deviation(R)))
    tolerance = 32 * len(R) * Fraction(float(np.finfo(float).eps)) * max(abs(x) for x in exact) ** 2
    assert abs(got**2 - variance(exact)) <= tolerance + Fraction(float(np.finfo(float).tiny)) ** 2


@every_kind
@named("alpha", [0.05, 0.3, 0.5, 1.0])
@given(data=st.data())
def test_cvar(kind, alpha, data):
    check(kind, data, lambda R: risk.cvar(R, alpha), lambda R: cvar(R, alpha))


@every_kind
@given(data=st.data())
def test_cvar_of_the_whole_sample_is_the_mean(kind, data):
    check(kind, data, lambda R: risk.cvar(R, 1), mean)


@every_kind
@named(
    ("function", "oracle", "degree"),
    [
        (risk.gini_weights, gini_weights, 1),
        (risk.gini_weights_unbiased, gini_weights_unbiased, 1),
        (risk.variance_weights, variance_weights, 2),
    ],
    ids=["gini", "gini_unbiased", "variance"],
)
@given(data=st.data())
def test_weights(kind, function, oracle, degree, data):
    check(kind, data, function, oracle, degree)


@every_function
@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_one_return_is_refused(name, x):
    with pytest.raises(ValueError, match="1 return in an input"):
        FUNCTIONS[name]([x])


@every_kind
@given(data=st.data())
def test_scaling_by_a_power_of_two_changes_no_bit(kind, data):
    """Ordinary returns have the same bits as in any other magnitude, so extreme ones are as exact."""
    dtype, as_array = KINDS[kind]
    R = np.array(data.draw(lists(st.integers(-(2**20), 2**20))), dtype) / dtype(1024)
    far = dtype(2) ** int(np.finfo(dtype).maxexp - 14)
    for function in (risk.gini_deviation, risk.standard_deviation, lambda R: risk.cvar(R, 0.3)):
        for factor in (far, 1 / far):
            scaled = function(as_array(R * factor))
            np.testing.assert_array_equal(np.asarray(scaled), np.asarray(function(as_array(R))) * factor)


# Single cases.


@named("dtype", [jnp.float16, jnp.bfloat16, jnp.int8, jnp.uint8])
@every_function
def test_small_dtypes_are_computed_in_32_bits(name, dtype):
    R = jnp.asarray(np.arange(300) % 100, dtype)
    got = FUNCTIONS[name](R)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, FUNCTIONS[name](np.arange(300.0) % 100), rtol=1e-4, atol=0.01)


def test_samples_of_very_different_magnitudes_are_scaled_one_by_one():
    R = np.array([[1.0, 3.0], [1e300, 3e300], [1e-300, 3e-300]])
    np.testing.assert_allclose(risk.gini_deviation(R), R[:, 0], rtol=1e-15)
    np.testing.assert_allclose(risk.standard_deviation(R), 2**0.5 * R[:, 0], rtol=1e-15)
    np.testing.assert_allclose(risk.gini_weights(R)[:, 0], [FUNCTIONS["gini_weights"](row)[0] for row in R], rtol=0)


def test_the_largest_floats():
    largest = np.finfo(float).max
    assert risk.cvar([-1e308, 1e308], 0.5) == -1e308
    assert risk.cvar([-largest, largest], 1) == 0
    assert risk.gini_deviation([-largest, largest]) == largest


@every_function
def test_masked_arrays_are_refused(name):
    masked = np.ma.masked_array([1.0, 2.0, 3.0, 99.0], [False, False, False, True])
    with pytest.raises(ValueError, match=r"masked array, .* drop the masked entries with x\.compressed\(\)"):
        FUNCTIONS[name](masked)
    FUNCTIONS[name](masked.compressed())


def test_masked_ratios_are_refused():
    masked = np.ma.masked_array([1.0, 1.0], [False, True])
    with pytest.raises(ValueError, match="ratios is a masked array"):
        risk.gini_weights_unbiased([1.0, 2.0], ratios=masked)
    with pytest.raises(ValueError, match="where is a masked array"):
        risk.gini_weights([1.0, 2.0], masked)


@every_function
@named("returns", [[10**400, 1], ["much", 1], [[1, 2], [3]], [1j, 2], np.array([1j, 2]), jnp.array([1j, 2]), None])
def test_what_is_no_number_is_refused(name, returns):
    with pytest.raises(ValueError, match=r"returns cannot be converted to floats|0 returns"):
        FUNCTIONS[name](returns)


def test_lists_of_masked_arrays_are_refused():
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, False, True])
    with pytest.raises(ValueError, match="masked"):
        risk.gini_deviation([masked, masked])
