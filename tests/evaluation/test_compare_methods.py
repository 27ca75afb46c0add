"""Two methods with several seeds each: known values, intervals that cover, and a real comparison in the maze."""

import json

import numpy as np
import pytest
from commands import refusal

import steadyrl
from steadyrl.cli.main import main
from steadyrl.evaluation.compare_methods import MethodComparison
from steadyrl.evaluation.reported import REPORTED
from steadyrl.evaluation.risk_report import RiskReport
from steadyrl.evaluation.seed_resamples import interquartile_mean, probability_above, seed_intervals

MAZE = "steadyrl/GuardedMaze-v0"
MEAN = {"mean": REPORTED["mean"]}


def reports(table, seed=0):
    return [RiskReport.from_returns(row, seed=seed) for row in table]


def test_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([8.0, 1, 2, 100])) == 5  # 1 and 100 are cut off.
    assert interquartile_mean(np.array([5.0, 1, 3])) == 3  # A quarter of three is no whole run.
    np.testing.assert_array_equal(interquartile_mean(np.array([[0.0, 1, 2, 3, 10], [4, 4, 4, 4, 4]])), [2, 4])


def test_probability_of_improvement_by_hand():
    # 3 is above 1 and equal to 3; 2 is above 1 and below 3: 1 + 0.5 + 1 + 0 of 4 pairs.
    assert probability_above(np.array([3.0, 2]), np.array([1.0, 3])) == 2.5 / 4
    assert probability_above(np.array([1.0, 1]), np.array([1.0])) == 0.5


def test_measures_are_of_all_returns_together_and_lower_is_better_for_risk():
    a, b = np.array([[1.0, 3], [5, 7], [1, 1]]), np.array([[0.0, 8], [0, 9], [0, 10]])
    compared = MethodComparison.of(reports(a), reports(b))
    for name, function in REPORTED.items():
        assert compared.a[name].value == function(a.ravel())
        assert compared.difference[name].value == pytest.approx(function(a.ravel()) - function(b.ravel()))
    # Run means 2, 6, 1 against 4, 4.5, 5: one of three is above each. Every run of a is steadier.
    assert compared.probability_of_improvement["mean"].value == pytest.approx(1 / 3)
    assert compared.probability_of_improvement["gini_deviation"].value == 1
    assert compared.iqm["difference"].value == pytest.approx(3 - 4.5)
    more_episodes = MethodComparison.of(reports(np.tile(a, 20)), reports(np.tile(b, 20)))
    assert more_episodes.better["gini_deviation"] == "a"
    assert more_episodes.better["mean"] is None


def test_with_more_runs_of_one_method_only_means_are_compared():
    """Two runs of a population contain less of its spread than ten do, and would seem steadier."""
    rng, seemed = np.random.default_rng(3), 0
    for _ in range(10):
        ten, two = (rng.normal(0, 10, (k, 1)) + rng.normal(0, 3, (k, 50)) for k in (10, 2))
        compared = MethodComparison.of(reports(ten), reports(two))
        seemed += compared.difference["gini_deviation"].low > 0
        assert {name for name, winner in compared.better.items() if winner} <= {"mean"}
    assert seemed >= 3
    assert "give as many runs of each (2)" in str(compared)
    assert "Steadier, by Gini deviation: not compared." in str(compared)
    above = MethodComparison.of(reports(ten + 100), reports(two))
    assert above.better["mean"] == "a"


def test_intervals_cover_the_difference_of_methods_not_of_runs():
    """Both methods are equally good, but their seeds differ: intervals over episodes alone would miss 0 mostly."""
    rng, hits, missed = np.random.default_rng(1), 0, 0
    for trial in range(60):
        shared = rng.normal(0, 2, 50)
        A, B = (rng.normal(0, 3, (8, 1)) + shared + rng.normal(0, 1, (8, 50)) for _ in range(2))
        _, low, high = seed_intervals(A, B, MEAN, trial).difference["mean"]
        hits += low <= 0 <= high
        gaps = (A - B).mean(axis=0)
        missed += abs(gaps.mean()) > 1.96 * gaps.std() / 50**0.5
    assert hits >= 51  # 95 % would be 57; 8 seeds give a little less.
    assert missed > 45


def test_what_an_episode_does_to_both_methods_cancels():
    rng = np.random.default_rng(0)
    noise = [rng.normal(0, 0.1, (6, 40)) for _ in range(2)]
    hard = rng.normal(0, 10, 40)
    plain = seed_intervals(noise[0] + 1, noise[1], MEAN, 0)
    paired = seed_intervals(noise[0] + 1 + hard, noise[1] + hard, MEAN, 0)
    np.testing.assert_allclose(paired.difference["mean"], plain.difference["mean"])
    assert paired.a["mean"].high - paired.a["mean"].low > 20 * (plain.a["mean"].high - plain.a["mean"].low)


def test_equal_methods_have_no_difference():
    compared = MethodComparison.of(reports(np.full((3, 4), 2.0)), reports(np.full((2, 4), 2.0)))
    assert compared.difference["mean"] == (0, 0, 0)
    assert compared.probability_of_improvement["mean"] == (0.5, 0.5, 0.5)
    assert set(compared.better.values()) == {None}
    assert "fewer than 5 runs" in str(compared)


def test_the_same_seed_gives_the_same_intervals():
    table = np.random.default_rng(0).normal(size=(2, 4, 30))
    assert seed_intervals(*table, REPORTED, 3) == seed_intervals(*table, REPORTED, 3)
    assert seed_intervals(*table, REPORTED, 3) != seed_intervals(*table, REPORTED, 4)


def test_reports_of_other_episodes_cannot_be_paired():
    with pytest.raises(ValueError, match="seed is 0 in one report and 1 in another"):
        MethodComparison.of(reports(np.ones((2, 3))), reports(np.ones((1, 3)), seed=1))
    with pytest.raises(TypeError, match="policy_b is one policy and the other a list"):
        steadyrl.compare([lambda seen: 0], lambda seen: 0, MAZE)
    with pytest.raises(ValueError, match="policy_a is an empty list"):
        steadyrl.compare([], [lambda seen: 0], MAZE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three seeds each of two methods, in folders as `steadyrl sweep` writes them, with policies that differ."""
    root = tmp_path_factory.mktemp("runs")
    for kind in (steadyrl.MeanGini, steadyrl.Reinforce):
        for seed in range(3):
            agent = kind(MAZE, seed=seed)
            table = np.random.default_rng(seed).normal(size=agent.learner.theta.shape)
            agent.learner = agent.learner._replace(theta=np.asarray(table, np.float32))
            (root / kind.name / f"seed{seed}").mkdir(parents=True)
            agent.save(root / kind.name / f"seed{seed}" / "checkpoint.steady")
    return root


def test_methods_in_the_maze(trained):
    a, b = ([steadyrl.load(trained / name / f"seed{k}") for k in range(3)] for name in ("mg", "reinforce"))
    compared = steadyrl.compare(a, b, MAZE, episodes=30, seed=2, metrics={"goals": lambda R: (R > 0).mean()})
    single = [steadyrl.evaluate(agent, MAZE, episodes=30, seed=2).returns for agent in a]
    np.testing.assert_array_equal([run.returns for run in compared.runs_a], single)
    assert compared.a["mean"].value == pytest.approx(np.mean(single))
    assert compared.a["goals"].value == pytest.approx(np.mean(np.array(single) > 0))
    assert compared.better["goals"] is None
    assert compared.facts.keys() == {"goal_rate", "red_visit_rate", "white_path_rate"}
    assert "goals" in str(compared)
    json.dumps(compared.to_dict())


def test_the_command_compares_folders_and_patterns(trained, capsys):
    main(["compare", str(trained / "mg"), str(trained / "reinforce" / "seed[12]"), "--episodes", "20"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"a: mg of {trained / 'mg'} (3 runs, seeds 0, 1, 2)"
    assert lines[1].endswith("(2 runs, seeds 1, 2)")
    assert [line.split()[0] for line in lines if line.startswith(("mean ", "iqm ", "cvar_10 "))] == [
        "mean",
        "iqm",
        "cvar_10",
    ]
    main(["compare", str(trained / "mg"), str(trained / "reinforce"), "--episodes", "20", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["runs"] == {"a": 3, "b": 3}
    assert set(data["probability_of_improvement"]["mean"]) == {"value", "low", "high"}
    assert [run["path"] for run in data["run_reports"]["a"]] == [str(trained / "mg" / f"seed{k}") for k in range(3)]


def test_mixtures_and_patterns_without_runs_are_pointed_out(trained, capsys):
    main(["compare", str(trained), str(trained / "mg" / "seed0"), "--episodes", "2"])
    assert "its runs are of different agents (mg, reinforce)" in capsys.readouterr().err
    steadyrl.MeanGini(MAZE, risk_aversion=0.1, seed=0).save(trained / "mg" / "other.steady")
    main(["compare", str(trained / "mg" / "*"), str(trained / "mg" / "seed0"), "--episodes", "2"])
    assert "its runs differ in risk_aversion, and are compared as one method" in capsys.readouterr().err
    line = refusal(capsys, "compare", trained / "mvo*", trained / "mg")
    assert line.endswith("no run folder or file matches this pattern.")


def test_conditions_on_methods(trained, capsys):
    command = ["compare", str(trained / "mg"), str(trained / "reinforce"), "--episodes", "20"]
    main([*command, "--fail-if", "probability_of_improvement.mean < 0", "--fail-if", "a.iqm.high < -1e6"])
    with pytest.raises(SystemExit) as stop:
        main([*command, "--fail-if", "a.facts.goal_rate <= 1"])
    assert stop.value.code == 3
    capsys.readouterr()
    line = refusal(capsys, *command, "--fail-if", "discounted.mean < 1")
    assert "unknown name 'discounted.mean'" in line
