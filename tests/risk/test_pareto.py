"""Dominated points and the hull, on points by hand and against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyrl.risk.pareto import dominated, hull

# risk 0   1   2   3   4 and means: the point at 1 lies below the line from 0 to 2, that at 4 is worse than that at 3.
MEAN, RISK = [0.0, 1.0, 4.0, 5.0, 4.5], [0, 1, 2, 3, 4]


def test_points_by_hand():
    assert dominated(MEAN, RISK).tolist() == [False, False, False, False, True]
    assert hull(MEAN, RISK) == [0, 2, 3]


@pytest.mark.parametrize(
    ("mean", "risk", "vertices"),
    [
        ([1.0], [2.0], [0]),
        ([1, 1, 1], [2, 2, 2], [0]),  # Equal points.
        ([1, 2], [0, 0], [1]),  # The same risk.
        ([1, 1], [1, 0], [1]),  # The same mean.
        ([0, 1, 2], [0, 1, 2], [0, 2]),  # On one line.
        ([3, 2, 1], [0, 1, 2], [0]),  # One is better than all others.
    ],
)
def test_special_cases(mean, risk, vertices):
    assert hull(mean, risk) == vertices


numbers = st.integers(-20, 20)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_vertices_are_those_that_are_best_for_some_lambda(points):
    mean, risk = np.array(points, float).T
    vertices = hull(mean, risk)
    assert not dominated(mean, risk)[vertices].any()
    assert np.all(np.diff(risk[vertices]) > 0)
    assert np.all(np.diff(mean[vertices]) > 0)
    best = (mean - np.geomspace(1e-3, 1e3, 601)[:, None] * risk).max(axis=1)
    of_vertices = (mean - np.geomspace(1e-3, 1e3, 601)[:, None] * risk)[:, vertices]
    np.testing.assert_allclose(of_vertices.max(axis=1), best)
    slopes = np.diff(mean[vertices]) / np.diff(risk[vertices])
    assert np.all(np.diff(slopes) < 0)  # So each of them is needed.
