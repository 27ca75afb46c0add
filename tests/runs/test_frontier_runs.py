"""Frontiers from run folders: what is trained, evaluated, kept and left out."""

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from commands import refusal
from long_sweep import run_names

import steadyrl
from steadyrl.cli.main import main
from steadyrl.reports.page import write_report
from steadyrl.runs import final_evaluation
from steadyrl.runs.final_evaluation import read_evaluation

MAZE = "steadyrl/GuardedMaze-v0"
QUICK = {"episodes": 60, "seeds": 2, "evaluation_episodes": 20, "progress": False}
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("frontier")


def make(out, **options):
    return steadyrl.frontier(MAZE, agents="mg, reinforce", out=out, **{"risk_aversion": "0:1:2", **QUICK, **options})


def test_a_frontier_and_what_is_kept(out, capsys, monkeypatch):
    found = make(out)
    assert [(p.agent, p.risk_aversion, p.seeds, p.episodes) for p in found.points] == [
        ("mg", 0, 2, 20),
        ("mg", 1, 2, 20),
        ("reinforce", None, 2, 20),
    ]
    assert len(run_names(out)) == 6
    assert set(found.points[1].runs) == {f"GuardedMaze-v0/mg,risk_aversion=1/seed{seed}" for seed in (0, 1)}
    assert len(found.exact) == 2
    # A point is what the stored episodes say, and those are what `evaluate` plays.
    stored = read_evaluation(out / found.points[1].runs[1], 20)
    report = steadyrl.evaluate(steadyrl.load(out / found.points[1].runs[1]), MAZE, episodes=20, seed=1)
    np.testing.assert_array_equal(stored.returns, report.returns)
    assert stored.report().to_dict() == report.to_dict()
    data = json.loads((out / "frontier.json").read_text())
    assert data["settings"]["seeds"] == [0, 1]
    assert {"command", "date", "versions", "points", "hull"} <= data.keys()

    monkeypatch.setattr(final_evaluation, "_evaluate_run", lambda *_: pytest.fail("it is stored"))
    again = make(out, evaluation_episodes=10)  # The first ten of them.
    assert "Kept 6 finished runs" in capsys.readouterr().out
    np.testing.assert_array_equal(read_evaluation(out / again.points[0].runs[0], 10).returns, stored_first(out, again))
    assert make(out).points == found.points


def stored_first(out, found):
    return read_evaluation(out / found.points[0].runs[0], 20).returns[:10]


def test_evaluations_of_other_agents_or_damaged_ones_are_repeated(out, tmp_path, capsys):
    make(out)
    folder = out / "GuardedMaze-v0/reinforce/seed0"
    file = folder / "final_evaluation.json"
    whole = file.read_text()
    assert read_evaluation(folder, 20) is not None
    assert read_evaluation(folder, 21) is None
    assert read_evaluation(folder, 20, deterministic=True) is None
    for content in ("{", "[]", whole.replace('"checkpoint": "', '"checkpoint": "0')):
        file.write_text(content)
        assert read_evaluation(folder, 20) is None
    make(out)
    assert file.read_text() == whole
    assert "is damaged and is written anew" in capsys.readouterr().err


def test_a_page_and_a_picture(out, capsys):
    command = ["frontier", MAZE, "--risk-aversion", "0:1:2", "--seeds", "2", "--episodes", "60"]
    main([*command, "--evaluation-episodes", "20", "--no-progress", "--out", str(out)])
    printed = capsys.readouterr().out
    table = printed[printed.index("   agent") : printed.index("Picture:")].splitlines()
    assert len(table) > 6
    assert max(map(len, table)) <= 80
    assert (out / "frontier.png").stat().st_size > 10_000
    page = (out / "report.html").read_text()
    assert page.index("<h2>Frontier</h2>") < page.index("<h2>Learning curves</h2>")
    assert "on the hull" in page
    (out / "frontier.json").write_text("{}")
    page = write_report(out, episodes=20).read_text()
    assert "frontier.json is not a frontier: it has no points." in page


def test_failed_runs_are_left_out_and_tried_again(tmp_path, monkeypatch):
    real = final_evaluation._evaluate_run

    def fails(job, run):
        if job.cell.agent == "reinforce" and run.seed == 0:
            raise ValueError("no luck")
        real(job, run)

    monkeypatch.setattr(final_evaluation, "_evaluate_run", fails)
    with pytest.warns(UserWarning, match="left out: .*reinforce seeds 0,1: evaluation: seed 0: no luck"):
        found = make(tmp_path)
    assert [(point.agent, point.seeds) for point in found.points] == [("mg", 2), ("mg", 2), ("reinforce", 1)]
    monkeypatch.setattr(final_evaluation, "_evaluate_run", real)
    assert make(tmp_path).points[-1].seeds == 2


def test_lambdas_are_chosen_automatically_and_the_same_ones_again(tmp_path):
    found = make(tmp_path, risk_aversion=None, auto=True, lambdas=4, seeds=1)
    aversions = [point.risk_aversion for point in found.points if point.agent == "mg"]
    assert {0, 0.25} <= set(aversions)
    assert 2 <= len(aversions) <= 4
    assert make(tmp_path, risk_aversion=None, auto=True, lambdas=4, seeds=1).points == found.points


def test_a_lambda_that_always_fails_is_not_proposed_for_ever(tmp_path, monkeypatch):
    real = final_evaluation._evaluate_run

    def fails(job, run):
        if run.settings["risk_aversion"] == 0.25:
            raise ArithmeticError("no luck")
        real(job, run)

    monkeypatch.setattr(final_evaluation, "_evaluate_run", fails)
    options = {**QUICK, "seeds": 1}
    with pytest.warns(UserWarning, match="ArithmeticError: no luck"):
        found = steadyrl.frontier(MAZE, agents=["mg"], auto=True, out=tmp_path, **options)
    assert [point.risk_aversion for point in found.points] == [0]


class Dial:
    """A trained agent whose risk aversion is chosen afterwards: above 1 it takes the white path."""

    name = "dial"

    def __init__(self, low=0.0, high=2.0):
        self.risk_aversion_range = (low, high)

    def at(self, risk_aversion):
        white = dict.fromkeys((30, 24, 18, 12, 6), 0) | dict.fromkeys(range(5), 3) | {5: 1}
        short = dict.fromkeys(range(30, 35), 3) | dict.fromkeys((35, 29, 23, 17), 0)
        path = white if risk_aversion > 1 else short
        return lambda cell: path[int(cell)]


def test_a_trained_agent_with_a_dial():
    found = steadyrl.frontier(Dial(), MAZE, risk_aversion=[0, 2], evaluation_episodes=500)
    assert [(point.agent, point.risk_aversion) for point in found.points] == [("dial", 0), ("dial", 2)]
    short, white = found.points
    assert white.mean == (10, 10, 10)
    assert white.gini_deviation.value == 0
    assert short.gini_deviation.low < 6.72 < short.gini_deviation.high
    assert found.hull[0] is white
    assert len(found.exact) == 2
    env = gym.make(MAZE)
    assert len(steadyrl.frontier(Dial(), env, evaluation_episodes=2).points) == 9
    with pytest.raises(ValueError, match="trained for 0 to 2"):
        steadyrl.frontier(Dial(), MAZE, risk_aversion=[3])
    with pytest.raises(ValueError, match="pass one"):
        steadyrl.frontier(Dial())
    for option in ({"out": "x"}, {"auto": True}, {"seeds": 5}, {"env_options": {"goal_reward": 40}}, {"on": "ray"}):
        with pytest.raises(ValueError, match=f"^{next(iter(option))}=: with a trained agent nothing is trained"):
            steadyrl.frontier(Dial(), MAZE, **option)
    fixed = Dial()
    fixed.risk_aversion_range = None
    with pytest.raises(ValueError, match="has one risk aversion"):
        steadyrl.frontier(fixed, MAZE)


def test_the_lambdas_of_a_dial_are_within_its_range():
    for low, high in ((1 / 3, 2 / 3), (0, 3), (1, 1.00001), (2, 2)):
        found = [p.risk_aversion for p in steadyrl.frontier(Dial(low, high), MAZE, evaluation_episodes=2).points]
        assert (found[0], found[-1]) == (low, high)
        assert found == sorted(set(found))
    levels = np.log1p([p.risk_aversion for p in steadyrl.frontier(Dial(0, 3), MAZE, evaluation_episodes=2).points])
    np.testing.assert_allclose(np.diff(levels), np.log(4) / 8, rtol=0.01)  # Four digits.


def test_a_dialled_agent_and_the_environments_that_are_made():
    agent = steadyrl.MeanGini(MAZE, risk_aversion=(0, 3)).learn(total_episodes=64, progress_bar=False)
    found = steadyrl.frontier(agent, risk_aversion=[0, 3], evaluation_episodes=5)
    assert [(point.agent, point.risk_aversion, point.episodes) for point in found.points] == [
        ("mg", 0, 5),
        ("mg", 3, 5),
    ]
    report = steadyrl.evaluate(agent.at(3), MAZE, episodes=5)
    assert found.points[1].mean.value == report.mean.value

    opened, closed = [], []

    class Counted(gym.Wrapper):
        def __init__(self):
            super().__init__(gym.make(MAZE))
            opened.append(self)

        def close(self):
            closed.append(self)
            super().close()

    steadyrl.frontier(agent, Counted, risk_aversion=[0, 3], evaluation_episodes=2)
    assert len(opened) == len(closed) > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--risk-aversion", "3:0:9"], "low end 3 is not below the high end 0"),
        (["--risk-aversion", "0:3:0"], "count 0"),
        (["--risk-aversion", ","], "it is empty"),
        (["--risk-aversion", "0:1:2", "--risk-aversion", "0:1:3"], "one range for all agents, or NAME=RANGE"),
        (["--risk-aversion", "mvo=0:1:2"], "not among the agents"),
        (["--risk-aversion", "reinforce=0:1:2"], "has no risk aversion"),
        (["--agents", "reinforce", "--risk-aversion", "0:1:2"], "reinforce has none"),
        (["--agents", "mg,mg"], "given twice"),
        (["--agents", "mvp", "--auto"], "mvp: risk_aversion=0.0: it must be above 0"),
        (["--auto", "--risk-aversion", "0:1:2"], "not both"),
        (["--auto", "--lambdas", "2"], "at least 3"),
        (["--set", "risk_aversion=1"], "give it as --risk-aversion"),
        (["--set", "gamma=0.9,1"], "give one value"),
        (["--seeds", "0"], "at least 1"),
        (["--evaluation-episodes", "1"], "at least 2"),
        (["--on", "moon"], "unknown place 'moon'"),
    ],
)
def test_mistakes_are_refused_before_anything_is_trained(options, reason, capsys, tmp_path):
    out = tmp_path / "out"
    assert reason in refusal(capsys, "frontier", MAZE, *options, "--out", out)
    assert not out.exists()


def test_an_environment_is_named():
    with pytest.raises(ValueError, match="Pass a Gymnasium id"):
        steadyrl.frontier(gym.make(MAZE), out="unused")
    assert not Path("unused").exists()
