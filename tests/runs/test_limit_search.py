"""The search for a lambda, with exact policies in place of trained ones."""

import pytest

from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.evaluation.frontier import ExactPoint, FrontierPoint, exact_points
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.runs.calibration import refuse_impossible
from steadyrl.runs.limit_search import BETWEEN, Limit, Search

MAZE = exact_points(Maze().mdp)
THREE = (ExactPoint(0, 0, 0, 0), ExactPoint(6, 2, 4, 3), ExactPoint(8, 4, 8, 1))
"""Slopes 3 and 1."""


class ExactTrainer:
    """The vertex that maximizes E - lambda D, as if training and evaluation had no errors."""

    def __init__(self, vertices):
        self.vertices, self.calls = vertices, []

    def __call__(self, aversion, neighbours=()):
        self.calls.append((aversion, neighbours))
        best = max(self.vertices, key=lambda point: point.mean - aversion * point.gini_deviation)
        return FrontierPoint("mg", aversion, *(Estimate(x, x, x) for x in best), seeds=1, episodes=2)


def search(limit, vertices=MAZE, low=0.0, high=2.0, **options):
    return Search(ExactTrainer(vertices), limit, **options).run(low, high)


def at_most(measure, bound):
    return Limit.of(measure, bound, None)


def at_least(measure, bound):
    return Limit.of(measure, None, bound)


def values(search):
    return search.best.mean.value, search.best.gini_deviation.value


def meeting(search):
    """The lambdas whose policies meet the limit."""
    return [point.risk_aversion for point in search.tried if search.limit.met(point)]


def best_vertex(limit, vertices):
    """By enumeration."""
    meeting = [point for point in vertices if limit.met(ExactTrainer([point])(0.0))]
    key = (lambda p: p.mean) if limit.measure != "mean" else (lambda p: -p.gini_deviation)
    return max(meeting, key=key)


@pytest.mark.parametrize("vertices", [MAZE, THREE])
@pytest.mark.parametrize(
    "limit",
    [
        *(at_most("gini", bound) for bound in (0, 1, 2.5, 5, 8)),
        *(at_most("std", bound) for bound in (0, 5, 20)),
        *(at_least("cvar_10", bound) for bound in (-5, 2)),
        *(at_least("mean", bound) for bound in (-3, 5, 7.5)),
    ],
    ids=str,
)
def test_the_best_vertex_within_the_limit_is_found(limit, vertices):
    found = search(limit, vertices, high=2.0, most=20)
    expected = best_vertex(limit, vertices)
    assert values(found) == (expected.mean, expected.gini_deviation)


def test_in_the_maze_a_limit_of_5_is_the_white_path_and_one_of_8_is_neutral():
    white, neutral = search(at_most("gini", 5)), search(at_most("gini", 8))
    assert values(white) == (10, 0)
    assert "The frontier jumps between lambda" in white.reason
    first, last = (p.risk_aversion for p in sorted(white.tried, key=lambda p: abs(p.risk_aversion - 0.2976))[:2])
    assert min(first, last) < 2 / 6.72 < max(first, last)
    assert abs(last - first) <= 0.1 * max(first, last)
    assert values(neutral) == (12, pytest.approx(6.72))
    assert [point.risk_aversion for point in neutral.tried] == [0]
    assert "already meets it" in neutral.reason


def test_the_ends_of_a_bracket_have_no_neighbours_and_what_is_between_has_two():
    found = search(at_most("gini", 5))
    assert found.train.calls[:3] == [(0, ()), (2, ()), (1, (0, 2))]
    assert all(low < aversion < high for aversion, (low, high) in found.train.calls[2:])


def test_lambda_is_doubled_until_it_brackets_the_limit():
    steep = (ExactPoint(0, 0, 0, 0), ExactPoint(60, 10, 20, 0))  # The slope is 6.
    found = search(at_most("gini", 5), steep)
    assert [aversion for aversion, _ in found.train.calls[:4]] == [0, 2, 4, 8]
    assert values(found) == (0, 0)
    upper = Search(ExactTrainer(steep), at_most("gini", 5)).run(0.0, lambda neutral: neutral.gini_deviation.value)
    assert upper.tried[1].risk_aversion == 10


def test_it_says_so_if_none_of_the_lambdas_tried_reaches_the_limit():
    found = search(at_most("gini", 5), MAZE[1:])
    assert found.best is None
    assert [aversion for aversion, _ in found.train.calls[:5]] == [0, 2, 4, 8, 16]
    assert len(found.tried) == 2 + 3 + BETWEEN
    assert (
        "None of the 9 lambdas tried, up to 16, reaches it; the closest is 0, with Gini deviation 6.72" in found.reason
    )
    found = search(at_least("mean", 13))
    assert found.best is None
    assert len(found.tried) == 2 + BETWEEN
    assert "None of the 6 lambdas tried, up to 2, reaches it; the closest is 0, with mean 12" in found.reason
    assert len(search(at_least("mean", 13), most=3).tried) == 3


def test_a_limit_that_only_lambdas_between_the_ends_meet():
    """CVaR is highest at the vertex in the middle."""
    found = search(at_least("cvar_10", 2), THREE, high=4.0)
    assert found.train.calls[:4] == [(0, ()), (4, ()), (8, ()), (2, (0, 4))]
    assert values(found) == (6, 2)
    # And the bracket is where it begins to be met, at the slope of 1.
    assert 1 <= min(meeting(found)) <= 1 / 0.9


class Uneven(ExactTrainer):
    """Policies as training finds them: means by lambda, which need not fall."""

    def __call__(self, aversion, neighbours=()):
        self.calls.append((aversion, neighbours))
        mean = 11.3 if aversion < 0.1 else 12.8 if aversion < 0.4 else 9.9 - aversion / 2
        risk = 7 if aversion < 0.4 else 0.1 + aversion / 4
        return FrontierPoint("mg", aversion, *(Estimate(x, x, x) for x in (mean, risk, risk, mean)), 1, 2)


def test_a_mean_that_lambda_0_misses_is_looked_for_between_the_ends():
    found = Search(Uneven(()), at_least("mean", 12)).run(0.0, 2.0)
    assert [aversion for aversion, _ in found.train.calls[:5]] == [0, 2, 1, 0.5, 0.25]
    assert found.best.mean.value == 12.8
    assert 0.36 <= max(meeting(found)) < 0.4


def test_both_sides_of_the_closest_point_are_tried():
    """The closest is lambda 2 after 0, 2 and 4; what meets the limit is below it, or above it."""
    below = Search(Uneven(()), at_least("cvar_10", 9.5)).run(0.0, 2.0)
    assert below.best is not None

    class Above(ExactTrainer):
        def __call__(self, aversion, neighbours=()):
            x = 5 - abs(aversion - 2.8)
            return FrontierPoint("mg", aversion, *(Estimate(x, x, x),) * 4, seeds=1, episodes=2)

    assert Search(Above(()), at_least("cvar_10", 4.9)).run(0.0, 2.0).best is not None


def test_it_stops_after_so_many_lambdas():
    found = search(at_most("gini", 5), most=4)
    assert len(found.tried) == 4
    assert "Stopped after 4 lambdas, between 0.25 and 0.5" in found.reason or "between 0 and 0.5" in found.reason
    assert values(found) == (10, 0)


def test_a_smooth_frontier_is_bracketed_without_a_jump():
    class Smooth(ExactTrainer):
        def __call__(self, aversion, neighbours=()):
            risk = 8 / (1 + aversion)
            estimates = [Estimate(x, x - 0.3, x + 0.3) for x in (10 + risk / 4, risk, 2 * risk, 10 - risk)]
            return FrontierPoint("mg", aversion, *estimates, seeds=1, episodes=2)

    found = Search(Smooth(()), at_most("gini", 5)).run(0.0, 2.0)
    # 8 / (1 + lambda) + 0.3 <= 5 from lambda = 0.702 on.
    assert 0.702 <= found.best.risk_aversion <= 0.702 * 1.12
    assert found.reason.startswith("The limit lies between lambda")


def test_a_policy_is_accepted_by_its_whole_interval():
    limit = at_most("gini", 5)
    of = lambda low, high: FrontierPoint("mg", 1.0, *(Estimate(4.5, low, high),) * 4, seeds=1, episodes=2)  # noqa: E731
    assert limit.met(of(4, 5))
    assert not limit.met(of(4, 5.1))
    assert limit.excess(of(4, 5.5)) == 0.5
    assert at_least("mean", 4).met(of(4, 5.1))
    assert not at_least("mean", 4).met(of(3.9, 5.1))


@pytest.mark.parametrize(
    ("measure", "most", "least", "reason"),
    [
        ("gini", None, None, "one of the two"),
        ("gini", 1, 1, "one of the two"),
        ("gini", None, 1, "at least would ask for a worse policy"),
        ("mean", 1, None, "at most would ask for a worse policy"),
        ("cvar_10", 1, None, "a limit is at least a number"),
        ("gini", -1, None, "never below 0"),
        ("std", -0.5, None, "never below 0"),
        ("gini", float("nan"), None, "no finite number"),
        ("mean", None, float("inf"), "no finite number"),
        ("ginny", 1, None, "Did you mean 'gini'"),
    ],
)
def test_limits_that_make_no_sense(measure, most, least, reason):
    with pytest.raises(ValueError, match=reason):
        Limit.of(measure, most, least)


def test_limits_beyond_the_exact_frontier_are_refused():
    for limit in (at_least("mean", 12.5), at_least("cvar_10", 10.5)):
        with pytest.raises(ValueError, match="no policy reaches it in this environment"):
            refuse_impossible(limit, MAZE)
    refuse_impossible(at_least("mean", 12), MAZE)
    refuse_impossible(at_most("gini", 0), MAZE)
    refuse_impossible(at_least("mean", 1e9), ())
