"""The frontier as an object: hull, table, file and picture."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.evaluation.agent_looks import agent_colours
from steadyrl.evaluation.frontier import ExactPoint, Frontier, FrontierPoint, exact_points
from steadyrl.evaluation.frontier_figure import limits_of, outside
from steadyrl.evaluation.risk_report import Estimate


def point(mean, risk, aversion=None, agent="mg", cvar=None):
    estimates = [Estimate(x, x - 0.1, x + 0.1) for x in (mean, risk, 2 * risk, mean - risk if cvar is None else cvar)]
    return FrontierPoint(agent, aversion, *estimates, seeds=3, episodes=200, runs=("a/seed0",))


SAFE, MIDDLE, RISKY = point(10, 0, 2.0), point(10.5, 4, 0.5), point(12, 6.7, 0.0)
BAD = point(-90, 30, 0.1, "mvo")
NEUTRAL = point(11.9, 6.9, None, "reinforce")
FOUND = Frontier(
    (SAFE, MIDDLE, RISKY, BAD, NEUTRAL), "Maze-v0", {"goal": 20}, exact_points(Maze().mdp), {"date": "today"}
)


def test_the_hull_and_what_is_dominated():
    assert FOUND.hull == [SAFE, RISKY]  # The middle is best for no lambda, but nothing is better in both respects.
    assert FOUND.dominated() == [BAD, NEUTRAL]
    assert FOUND.hull_of("cvar_10") == [SAFE, RISKY]  # More CVaR is better: from the safest on.
    assert FOUND.exact_hull() == [ExactPoint(10, 0, 0, 10), ExactPoint(12, 6.72, pytest.approx(12.522, abs=1e-3), -2)]


def test_points_are_made_from_the_returns_of_seeds():
    returns = [np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0])]
    made = FrontierPoint.of("mg", 0.5, returns, ["x", "y"])
    assert made.mean.value == pytest.approx(1.5)
    assert (made.seeds, made.episodes, made.runs, made.label) == (2, 3, ("x", "y"), "mg 0.5")
    assert made.mean.low < 1.5 < made.mean.high


def test_the_table():
    text = str(FOUND)
    rows = [line.split()[:3] for line in text.splitlines()[1:6]]
    assert rows[0] == ["*", "mg", "0"]
    assert rows[1][:2] == ["-", "reinforce"]
    assert rows[2] == ["mg", "0.5", "10.5"]
    assert rows[3] == ["*", "mg", "2"]
    assert rows[4][:2] == ["-", "mvo"]
    assert "Exact frontier: mean 10 with GD 0; mean 12 with GD 6.72." in text


numbers = st.floats(-1e9, 1e9)


@given(numbers, numbers, st.floats(0, 1e9), st.sampled_from(["mg", "mean_risk"]))
def test_the_table_fits_a_terminal(mean, cvar, risk, agent):
    text = Frontier((point(mean, risk, 0.123456, agent, cvar), RISKY), "Maze-v0").table()
    assert max(map(len, text.splitlines())) <= 80


def test_it_is_saved_and_loaded(tmp_path):
    loaded = Frontier.load(FOUND.save(tmp_path / "frontier.json"))
    assert loaded == FOUND
    assert json.loads((tmp_path / "frontier.json").read_text())["hull"]["gini_deviation"] == ["mg 2", "mg 0"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"points": []}', '{"points": [1], "env": "x"}', '{"points": [{}], "env": "x"}', "[" * 99_999],
)
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "frontier.json").write_text(text)
    with pytest.raises(ValueError, match=r"frontier\.json is not a frontier"):
        Frontier.load(tmp_path / "frontier.json")


@pytest.mark.parametrize("damage", [{"mean": None}, {"mean": {"value": 1}}, {"seeds": "3"}, {"risk_aversion": "x"}])
def test_damaged_points_are_refused(damage, tmp_path):
    data = FOUND.to_dict()
    data["points"][0] |= damage
    (tmp_path / "frontier.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="is not a frontier"):
        Frontier.load(tmp_path / "frontier.json")


def test_the_picture_shows_the_frontier_and_not_what_is_far_behind(tmp_path):
    assert outside(FOUND) == [BAD]
    low, high = limits_of(FOUND, "mean")
    assert 9 < low < 10
    assert 12 < high < 13
    assert FOUND.plot(tmp_path / "picture.png").stat().st_size > 10_000
    limited = Frontier((SAFE,), "x", details={"limit": {"measure": "gini_deviation", "bound": 5.0, "at_most": True}})
    assert limits_of(limited, "gini_deviation")[1] > 5
    assert limited.plot(tmp_path / "one.png").is_file()


def test_agents_have_their_titles_and_the_colours_of_the_page(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    found = Frontier((SAFE, point(9, 3, None, "reinforce")), "x")
    found.plot(tmp_path / "picture.png")
    (legend,) = drawn[0].legends
    colours = {text.get_text(): line.get_color() for text, line in zip(legend.texts, legend.get_lines(), strict=True)}
    assert colours["MG"] == agent_colours(["mg"])["mg"]
    assert colours["REINFORCE"] == agent_colours(["reinforce"])["reinforce"]
    assert [one.title for one in found.points] == ["MG, lambda 2", "REINFORCE"]
