"""What `Properties` state of each measure, for any sample; where they deny something, a counterexample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyrl.risk import MEASURES, Law, measure_by_name

named = pytest.mark.parametrize
NAMES = sorted(MEASURES.keys() - {"gini_paper", "gini_deviation"})
every_measure = named("name", NAMES)


def stating(condition):
    return named("name", [name for name in NAMES if condition(MEASURES[name].properties)])


RETURN = st.integers(-800, 800).map(lambda k: k / 8)
SAMPLES = st.lists(RETURN, min_size=2, max_size=12).map(np.array)
PAIRS = st.lists(st.tuples(RETURN, RETURN), min_size=2, max_size=12).map(lambda pairs: np.array(pairs).T)
FACTOR = st.sampled_from([0.125, 0.5, 3.0, 40.0])


def close(found, expected, size):
    """Up to rounding errors in sums of returns, or of squares of them, of that size."""
    return found == pytest.approx(expected, rel=1e-9, abs=1e-11 * (1 + size) ** 2)


@stating(lambda p: p.location_invariant)
@given(R=SAMPLES, c=RETURN)
def test_location_invariance(name, R, c):
    value, u = MEASURES[name].value, MEASURES[name].utility
    assert close(value(R + c), value(R), 100)
    law, moved = (Law(R + shift, np.full(R.size, 1 / R.size)) for shift in (0, c))
    np.testing.assert_allclose(u(R + c, moved), u(R, law), rtol=1e-7, atol=1e-7)


@named("name", ["cvar", "entropic_risk"])
@given(R=SAMPLES, c=RETURN)
def test_of_risk_measures_a_sure_gain_lowers_the_risk_by_itself(name, R, c):
    value = MEASURES[name].value
    assert close(value(R + c), value(R) - c, 100)


@stating(lambda p: p.degree is not None)
@given(R=SAMPLES, c=FACTOR)
def test_positive_homogeneity(name, R, c):
    measure = MEASURES[name]
    factor = c**measure.properties.degree
    assert close(measure.value(c * R), factor * measure.value(R), 100 * c)
    law, larger = (Law(s * R, np.full(R.size, 1 / R.size)) for s in (1, c))
    np.testing.assert_allclose(measure.utility(c * R, larger), factor * measure.utility(R, law), rtol=1e-7, atol=1e-6)


@stating(lambda p: p.sub_additive)
@given(XY=PAIRS)
def test_sub_additivity(name, XY):
    value, (X, Y) = MEASURES[name].value, XY
    assert value(X + Y) <= value(X) + value(Y) + 1e-9


@stating(lambda p: p.respects_convex_order)
@given(XZ=PAIRS)
def test_convex_order(name, XZ):
    # Each return is moved up or down by the same amount, as likely as not: the mean stays.
    value, (X, Z) = MEASURES[name].value, XZ
    before, after = np.concatenate([X, X]), np.concatenate([X + Z, X - Z])
    assert value(after) >= value(before) - 1e-9


@every_measure
@given(R=SAMPLES, data=st.data())
def test_measures_depend_on_the_law_alone(name, R, data):
    value = MEASURES[name].value
    shuffled = np.array(data.draw(st.permutations(R.tolist())))
    assert close(value(shuffled), value(R), 100)


@stating(lambda p: p.location_invariant)
def test_returns_without_dispersion(name):
    assert MEASURES[name].value(np.full(9, 7.3)) == pytest.approx(0, abs=1e-12)


COHERENT = {
    "gini", "standard_deviation", "semideviation", "mean_deviation", "mean_median_deviation", "inter_es_range",
    "cvar_deviation", "cvar",
}  # fmt: skip


INCOHERENT = {"variance", "semivariance", "inter_quantile_range", "entropic_risk"}


def test_which_are_coherent():
    assert all(MEASURES[name].properties.coherent for name in COHERENT)
    assert not any(MEASURES[name].properties.coherent for name in INCOHERENT)


# What is denied.

FOUR = np.array([0.0, 1.0, 2.0, 5.0])


@stating(lambda p: p.degree is None)
def test_not_homogeneous_of_any_degree(name):
    doubled, quadrupled = (MEASURES[name].value(c * FOUR) / MEASURES[name].value(FOUR) for c in (2, 4))
    assert abs(quadrupled / doubled**2 - 1) > 0.05


NOT_SUB_ADDITIVE = {
    "variance": (FOUR, FOUR),
    "semivariance": (FOUR, FOUR),
    "entropic_risk": (FOUR, FOUR),
    # Either is 1 too rarely to be seen by its upper quantile, their sum is not.
    "inter_quantile_range": (np.eye(10)[0], np.eye(10)[1]),
}


@stating(lambda p: not p.sub_additive)
def test_not_sub_additive(name):
    value, (X, Y) = MEASURES[name].value, NOT_SUB_ADDITIVE[name]
    assert value(X + Y) > value(X) + value(Y) + 0.1


@stating(lambda p: not p.respects_convex_order)
def test_not_in_the_convex_order(name):
    # From -1 and 1 to 0 and, rarely, -10 and 10: the mean of each half stays.
    value, before, after = MEASURES[name].value, np.repeat([-1.0, 1.0], 10), np.repeat([-10.0, 0.0, 10.0], [1, 18, 1])
    assert value(after) < value(before) - 1


# By name


def test_a_measure_by_name_and_number():
    R = np.random.default_rng(0).normal(size=50)
    assert measure_by_name("cvar:0.3").value(R) == MEASURES["cvar"].at(0.3).value(R) != MEASURES["cvar"].value(R)
    assert measure_by_name(" semivariance ") is MEASURES["semivariance"]


@named(
    ("text", "message"),
    [
        ("cvarr", "unknown measure 'cvarr'. Did you mean 'cvar'?"),
        ("cvar:x", "cvar:x: a number is needed after the colon, as in cvar:0.2"),
        ("cvar:2", "alpha=2.0: the tail is a fraction"),
        ("gini:2", "gini:2: gini has no number of its own. Write gini."),
        ("inter_quantile_range:0.5", "alpha=0.5: .* 0 < alpha < 0.5"),
        ("entropic_risk:-1", "beta=-1.0: .* beta > 0"),
    ],
)
def test_wrong_names_and_numbers(text, message):
    with pytest.raises(ValueError, match=message):
        measure_by_name(text)
