"""The benchmark of one policy for a range of lambdas: its plan, a run at a small scale, its page."""

import json

import gymnasium as gym
import numpy as np
import pytest

import steadyrl
from benchmarks.learning import dial, dial_page


def test_every_method_of_every_domain_can_be_made():
    for domain, plan in dial.PLAN["domains"].items():
        env = gym.make(plan["env"])
        for method in plan["methods"]:
            settings = dial.settings_of(domain, method)
            if method.startswith("dial"):
                assert dial.dialled(env, domain, method, 0).risk_aversion_range == dial.range_of(domain)
            else:
                assert steadyrl.MeanGini(env, risk_aversion=1.0, **settings).episodes == 0


def test_the_variants_of_tables_are_what_they_are_called():
    env = gym.make("steadyrl/GuardedMaze-v0")
    two, apart = (dial.dialled(env, "maze_tables", name, 0) for name in ("dial, 2 tables", "dial, 4 tables apart"))
    assert two.learner.theta.shape == (2, 36, 4)
    assert two.learner.risk.parameters.shape == (2, 36, 8)
    assert apart.learner.theta.shape == (4, 36, 4)
    levels = np.asarray(apart.algorithm.dial.levels(5))
    assert np.array_equal(levels, np.asarray(apart.algorithm.dial.levels(6)))
    np.testing.assert_allclose(apart.algorithm.policy.knots.shares(levels), np.eye(4), atol=1e-5)


def test_the_pure_paths_of_the_maze_are_those_worked_out_by_hand():
    """Through red 9 moves: 7 cost 1, red costs 1 on average, the last one pays 20. White 11: 10 cost 1."""
    neutral, safest = dial_page.pure_paths("steadyrl/GuardedMaze-v0")
    red = [(-15, 0.4), (-1, 0.2), (13, 0.4)]
    deviation = sum(p * q * abs(x - y) for x, p in red for y, q in red) / 2
    assert neutral.deviation == pytest.approx(deviation)
    assert safest.deviation == pytest.approx(0, abs=1e-9)
    assert (neutral.mean, safest.mean) == pytest.approx((12, 10))
    assert dial_page.pure_paths("CartPole-v1") is None


@pytest.mark.slow
def test_a_run_is_recorded_once_and_is_on_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dial, "RUNS", tmp_path / "runs.jsonl")
    monkeypatch.setattr(dial, "PAGE", tmp_path / "page.md")
    monkeypatch.setitem(dial.PLAN["domains"]["maze"], "episodes", 100)
    monkeypatch.setitem(dial.PLAN["domains"]["maze"], "lambdas", 3)
    for _ in range(2):
        dial.main(["--domains", "maze", "--seeds", "1"])
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(run["method"], run["episodes"]) for run in runs] == [("one lambda each", 300), ("dial", 300)]
    assert [point["lambda"] for point in runs[0]["points"]] == pytest.approx([0, 1, 3])
    dial.main(["--report"])
    page = (tmp_path / "page.md").read_text()
    assert "## Guarded Maze" in page
    assert (
        "Not run: Guarded Maze: what makes the difference; InvertedPendulum, lambda there from the start;"
        in page.replace("\n", " ")
    )
    monkeypatch.setitem(dial.PLAN["domains"]["maze"], "episodes", 200)
    assert not dial.as_planned(runs[0])
