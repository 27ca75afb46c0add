"""The numbers on the page: visits, marks with intervals, bars, and how numbers are written."""

import numpy as np
import pytest

from steadyrl.envs.guarded_maze import Maze
from steadyrl.evaluation.risk_report import Estimate, measure_risk
from steadyrl.reports.page import formatting
from steadyrl.reports.page.evaluation import marks_of, visits_of
from steadyrl.reports.page.histograms import bin_edges, counts_of
from steadyrl.reports.page.maze_map import maze_map
from steadyrl.rollouts.episodes import Episodes

WALLS = 7


def test_visits_count_every_cell_and_the_last():
    maze = Maze(layout="S.G")
    episodes = Episodes(  # One goes right, right; one bumps up, goes right, bumps down.
        observations=np.array([[0, 1, 0], [0, 0, 1]]),
        actions=np.array([[3, 3, 0], [0, 3, 1]]),
        rewards=np.zeros((2, 3)),
        mask=np.array([[1, 1, 0], [1, 1, 1]]),
        last_observations=np.array([2, 1]),
        terminated=np.array([True, False]),
        episode_metrics={},
    )
    np.testing.assert_allclose(visits_of(maze, episodes), [[1.5, 1.5, 0.5]])


def test_marks_of_one_seed_are_those_of_the_risk_report():
    returns = np.arange(50.0)
    risk = measure_risk(returns, seed=0)
    expected = {"mean": risk.mean, "gini_deviation": risk.gini_deviation, "cvar_10": risk.cvar_10}
    assert marks_of([returns]) == expected


def test_intervals_of_several_seeds_know_that_seeds_differ():
    rng = np.random.default_rng(0)
    seeds = [level + rng.normal(size=200) for level in np.linspace(-10, 10, 8)]
    mean = marks_of(seeds)["mean"]
    assert mean.value == pytest.approx(np.mean(seeds))
    spread = np.std([s.mean() for s in seeds]) / np.sqrt(8)
    # Episodes alone would give 1.96 * 6.6 / sqrt(1600) = 0.32.
    assert (mean.high - mean.low) / 2 == pytest.approx(1.96 * spread, rel=0.15)
    assert marks_of([np.full(9, -100.0)] * 3)["mean"] == (-100, -100, -100)


def test_bars_hold_every_episode():
    whole, real = np.array([-100.0, 9, 10, 10]), np.random.default_rng(0).normal(size=500)
    edges = bin_edges(whole)
    bins = {float((edges[bin] + edges[bin + 1]) / 2): count for bin, count in counts_of(whole, edges)}
    assert bins == {-100: 1, 9: 1, 10: 2}
    assert sum(count for _, count in counts_of(real, bin_edges(real))) == 500


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (formatting.number(12345.6), "12,346"),
        (formatting.number(-99.996), "-100"),
        (formatting.number(8.694), "8.69"),
        (formatting.number(0.01234), "0.0123"),
        (formatting.number(0), "0"),
        (formatting.number(float("nan")), "n/a"),
        (formatting.percent(0.97), "97 %"),
        (formatting.percent(0.997), "99.7 %"),
        (formatting.percent(1.0), "100 %"),
        (formatting.with_error(8.663, 0.041, "return", 10), "8.66 ± 0.04"),
        (formatting.with_error(8.663, 0.004, "return", 10), "8.663 ± 0.004"),
        (formatting.with_error(0.00415, 0.002, "gini_deviation", 7.57), "0.0042 ± 0.0020"),
        (formatting.with_error(8.663, None, "return", 10), "8.66"),
        (formatting.with_error(0.5, 0.17, "goal_rate", 1), "50 ± 17 %"),
        (formatting.with_error(0.382, 0.001, "goal_rate", 1), "38.2 ± 0.1 %"),
        (formatting.interval(Estimate(2, 1, 3.456)), "[1.00, 3.46]"),
        (formatting.span([5000, 5000]), "5,000"),
        (formatting.span([5000, 200]), "200 to 5,000"),
        (formatting.setting(0.0001), "0.0001"),
        (formatting.setting([-15.0, True, "a\nb"]), "-15, true, a b"),
        (formatting.setting("x" * 50), "x" * 37 + "..."),
    ],
)
def test_numbers_have_the_digits_that_matter(actual, expected):
    assert actual == expected


def test_large_mazes_are_drawn_without_numbers():
    wide = Maze(layout="S" + "." * 20 + "G")
    assert maze_map(wide, np.ones(wide.grid.shape), 10.0).count("<text") == 2  # S and G
    small = maze_map(Maze(), np.full((6, 6), 0.57), 10.0)
    assert small.count(">.57</text>") == 36 - WALLS
