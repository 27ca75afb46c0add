"""Which lambda the episodes of a round are played with."""

import jax
import numpy as np
import pytest

from steadyrl.training.dial import Dial, lambda_at, level_of, round_levels

named = pytest.mark.parametrize
LOW, HIGH = 0.0, 3.0
_levels = jax.jit(jax.vmap(Dial.levels, in_axes=(None, 0)))


def levels_of(dial, rounds):
    """[rounds, groups]."""
    return np.asarray(_levels(dial, rounds))


@named("groups", [3, 4, 6])
def test_the_ends_are_always_played_and_the_strata_between_them_once_each(groups):
    dial, strata = Dial(LOW, HIGH, groups), groups - 2
    for levels in levels_of(dial, np.arange(50)):
        assert levels[0] == 0
        assert levels[-1] == np.log1p(np.float32(HIGH))
        place = levels[1:-1] / levels[-1] * strata
        assert np.all(place >= np.arange(strata) - 1e-5)
        assert np.all(place <= np.arange(strata) + 1 + 1e-5)


def test_any_rounds_in_a_row_cover_a_stratum_evenly():
    """Of 20 rounds, one to four are in each tenth of it; 20 numbers by lot would leave out one or more, mostly."""
    dial = Dial(LOW, HIGH, 3)
    for first in (0, 1, 1000, 2_000_000):
        places = levels_of(dial, np.arange(first, first + 20))[:, 1] / np.log1p(HIGH)
        counts = np.histogram(places, bins=10, range=(0, 1))[0]
        assert counts.min() >= 1
        assert counts.max() <= 4


def test_levels_are_a_function_of_the_round_alone_and_of_nothing_before_it():
    dial = Dial(0.5, 2.0, 4)
    in_turn = levels_of(dial, np.arange(10))
    assert np.array_equal(levels_of(dial, np.arange(7, 10)), in_turn[7:])
    np.testing.assert_allclose(dial.levels(7), in_turn[7], rtol=1e-6)
    assert not np.array_equal(in_turn[7], in_turn[8])


def test_lambdas_and_levels_are_inverse():
    for risk_aversion in (0.0, 0.1, 1.2, 30.0):
        assert lambda_at(np.float32(level_of(risk_aversion))) == pytest.approx(risk_aversion, rel=1e-5)


def test_the_episodes_of_a_group_follow_each_other():
    class Dialled:
        dial = Dial(LOW, HIGH, 4)

    levels = round_levels(Dialled(), 5, 32)
    assert np.array_equal(Dialled.dial.by_group(levels), np.repeat(Dialled.dial.levels(5)[:, None], 8, axis=1))
    assert round_levels(object(), 5, 32) is None
