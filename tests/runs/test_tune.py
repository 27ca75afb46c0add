"""Search for settings: what is maximized, pruning, failures, several objectives, and studies that continue."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import refusal

import steadyrl
from steadyrl.cli.main import main
from steadyrl.evaluation.reported import REPORTED
from steadyrl.runs import tuning
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.tuning_plan import TunePlan, lower_bound, plan_of
from steadyrl.runs.tuning_results import Trial, Tuning
from steadyrl.training.run_folder import read_config

pytest.importorskip("optuna")
ENV = "steadyrl/GuardedMaze-v0"
RATE = {"policy_learning_rate": {"low": 1e-3, "high": 1e-1, "log": True}}
SMALL = {"episodes": 100, "evaluation_episodes": 20, "progress": False, "only": True, "search": RATE}


def search(out, **options):
    return steadyrl.tune(ENV, "mg", **{**SMALL, "trials": 3, "seeds": 2, "out": out, **options})


# What is maximized.


def test_the_bound_of_known_returns():
    assert lower_bound([np.full(10, 3.0)], "gini_deviation", 2.0) == 3.0
    apart = lower_bound([np.full(10, 0.0), np.full(10, 4.0)], "gini_deviation", 0.0)
    assert apart == 0.0  # A quarter of the resamples has the worse seed alone.
    rng = np.random.default_rng(1)
    returns = [rng.normal(5, 1, 500) for _ in range(20)]
    gini = 1 / np.sqrt(np.pi)
    assert lower_bound(returns, "gini_deviation", 1.0) == pytest.approx(5 - gini, abs=0.1)
    assert lower_bound(returns, "gini_deviation", 1.0) < 5 - gini
    # Of CVaR more is better: mean + lambda CVaR.
    cvar = float(REPORTED["cvar_10"](np.concatenate(returns)))
    assert lower_bound(returns, "cvar_10", 1.0) == pytest.approx(5 + cvar, abs=0.15)


def test_the_objective_is_the_agents_own_by_default():
    plan = plan_of(ENV, "mg", {"risk_aversion": 0.7}, {})
    assert (plan.measure, plan.risk_aversion) == ("gini_deviation", 0.7)
    assert plan.objective_text() == "lower 90% bound of mean - 0.7 gini_deviation"
    assert plan_of(ENV, "reinforce", {}, {}).objective_text() == "lower 90% bound of mean"
    assert plan_of(ENV, "mg", {}, {}, measure="std", risk_aversion=2).measure == "standard_deviation"


# Trials.


@pytest.mark.usefixtures("in_process")
def test_trials_are_run_folders_and_the_best_can_be_trained(tmp_path, capsys, monkeypatch):
    found = search(tmp_path / "study")
    assert [trial.state for trial in found.trials] == ["complete"] * 3
    default = steadyrl.MeanGini(ENV).settings
    assert found.trials[0].settings["policy_learning_rate"] == default.policy_learning_rate
    for trial in found.trials:
        folders = [tmp_path / "study" / "trials" / f"{trial.number:04d}" / f"seed{seed}" for seed in (0, 1)]
        returns = [read_evaluation(folder, 20).returns for folder in folders]
        assert trial.values == (lower_bound(returns, "gini_deviation", default.risk_aversion),)
        assert trial.measures["mean"] == pytest.approx(np.concatenate(returns).mean())
        recorded = read_config(folders[0])["settings"]["policy_learning_rate"]
        assert recorded == trial.settings["policy_learning_rate"]
    assert found.best.values == max(trial.values for trial in found.trials)
    monkeypatch.chdir(tmp_path)
    found.save("best.toml")
    main(["train", ENV, "--settings", "best.toml", "--episodes", "50", "--out", "run", "--no-page", "--no-progress"])
    assert (
        read_config(tmp_path / "run")["settings"]["policy_learning_rate"] == found.best.settings["policy_learning_rate"]
    )
    assert "objective" in str(found)


@pytest.mark.usefixtures("in_process")
def test_a_study_continues(tmp_path, monkeypatch):
    first = search(tmp_path, trials=2)
    real, calls = tuning.train_all, itertools.count(1)

    def killed(cells, *place):
        if cells and next(calls) == 2:
            raise KeyboardInterrupt
        return real(cells, *place)

    monkeypatch.setattr(tuning, "train_all", killed)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, trials=4, parallel=1)
    monkeypatch.undo()
    found = search(tmp_path, trials=4, parallel=1)
    assert found.trials[:2] == first.trials
    assert [trial.state for trial in found.trials] == ["complete"] * 4
    assert len({trial.settings["policy_learning_rate"] for trial in found.trials}) == 4
    assert search(tmp_path, trials=4).trials == found.trials
    with pytest.raises(FileExistsError, match="already holds a study with other budget, seeds"):
        search(tmp_path, trials=4, seeds=3, episodes=150)


@pytest.mark.usefixtures("in_process")
def test_a_trial_fails_alone(tmp_path):
    found = search(tmp_path, trials=4, seeds=1, search={"episodes_per_update": [1, 10]})
    failed = [trial for trial in found.trials if trial.settings["episodes_per_update"] == 1]
    assert failed == found.failed
    assert all("needs at least 3" in trial.reason for trial in failed)
    complete = [trial.settings["episodes_per_update"] for trial in found.complete]
    assert set(complete) <= {10}
    assert len(failed) + len(complete) == 4


@pytest.mark.usefixtures("in_process")
def test_bad_trials_are_pruned_after_the_first_seed(tmp_path, monkeypatch):
    """Each bound is lower than those before."""
    falling = itertools.count(0, -1)
    monkeypatch.setattr("steadyrl.runs.tuning_plan.lower_bound", lambda *_: float(next(falling)))
    found = search(tmp_path, trials=6, parallel=1)
    assert [trial.state for trial in found.trials] == ["complete"] * 4 + ["pruned"] * 2
    assert [trial.seeds for trial in found.trials] == [2, 2, 2, 2, 1, 1]
    assert not (tmp_path / "trials" / "0005" / "seed1").exists()
    assert "4 trials complete, 2 pruned" in " ".join(str(found).split())


def test_the_pareto_set():
    plan = TunePlan(ENV, "mg", objectives=("mean", "gini_deviation"))
    points = [(10, 5), (8, 3), (7, 4), (5, 1), (10, 6), (8, 3)]
    found = Tuning(plan, tuple(Trial(k, "complete", {}, values) for k, values in enumerate(points)))
    assert {trial.number for trial in found.pareto} == {0, 1, 3, 5}
    with pytest.raises(ValueError, match="several objectives have no best trial"):
        _ = found.best


# The command.

TUNE = ["tune", ENV, "--episodes", "100", "--evaluation-episodes", "20", "--only", "--no-page"]
RANGE = ["--search", "policy_learning_rate=1e-3:1e-1:log"]


@pytest.mark.usefixtures("in_process")
def test_the_command_writes_settings_table_and_picture(tmp_path, capsys):
    main([*TUNE, *RANGE, "--trials", "2", "--seeds", "1", "--out", str(tmp_path)])
    printed = capsys.readouterr()
    assert "tune: 2 of 2 trials, best " in printed.err
    assert "2 trials complete, 0 pruned, 0 failed." in " ".join(printed.out.split())
    assert f"steadyrl train {ENV} --settings {tmp_path / 'best.toml'}" in printed.out
    assert (tmp_path / "tuning.png").stat().st_size > 10_000
    assert len(json.loads((tmp_path / "tuning.json").read_text())["trials"]) == 2


@pytest.mark.usefixtures("in_process")
def test_several_objectives_give_the_frontier(tmp_path, capsys):
    options = ["--trials", "3", "--seeds", "1", "--objectives", "mean,gini", "--search", "risk_aversion=0.1:3:log"]
    main([*TUNE, *options, "--out", str(tmp_path)])
    assert "* not dominated: high mean and low gini_deviation" in " ".join(capsys.readouterr().out.split())
    frontier = steadyrl.Frontier.load(tmp_path / "frontier.json")
    trials = json.loads((tmp_path / "tuning.json").read_text())["trials"]
    assert {point.risk_aversion for point in frontier.points} == {one["settings"]["risk_aversion"] for one in trials}
    assert {round(point.mean.value, 6) for point in frontier.points} == {round(one["values"][0], 6) for one in trials}
    assert list(tmp_path.glob("trial-*.toml"))
    assert (tmp_path / "frontier.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "there is no setting to search"),
        (["--search", "policy_lerning_rate=1e-3:1"], "unknown setting 'policy_lerning_rate'"),
        (["--search", "gamma=0.9:0.5"], "the low end 0.9 is not below"),
        ([*RANGE, "--set", "gama=0.9"], "unknown setting 'gama'"),
        ([*RANGE, "--objectives", "mean"], "name at least two"),
        ([*RANGE, "--objectives", "mean,ginni"], "unknown measure 'ginni'"),
        ([*RANGE, "--objectives", "mean,gini", "--risk-aversion", "1"], "with several there is no lambda"),
        ([*RANGE, "--measure", "dispersion"], "unknown measure 'dispersion'"),
        ([*RANGE, "--trials", "0"], "trials 0: at least 1"),
        ([*RANGE, "--seeds", "0"], "seeds 0: at least 1"),
        ([*RANGE, "--risk-aversion", "-1"], "at least 0"),
        ([*RANGE, "--evaluation-episodes", "1"], "risk needs at least 2"),
        ([*RANGE, "--parallel", "0"], "parallel 0: at least 1"),
        ([*RANGE, "--on", "rya"], "unknown place 'rya'. Did you mean 'ray'?"),
        ([*RANGE, "--address", "auto"], "Add --on ray"),
        ([*RANGE, "--seed", "-1"], "seed -1: that of the search is from 0"),
        ([*RANGE, "--episodes", "0"], "0 timesteps or episodes"),
        ([*RANGE, "--checkpoint-every", "-1"], "at least 0 seconds"),
    ],
)
def test_mistakes_are_found_before_anything_is_printed_or_written(options, reason, tmp_path, capsys):
    assert reason in refusal(capsys, *TUNE, *options, "--out", tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.usefixtures("in_process")
def test_the_largest_seed_of_a_search_continues(tmp_path):
    for trials in (1, 2):
        found = search(tmp_path, trials=trials, seeds=1, seed=2**32 - 1)
    assert len(found.complete) == 2


def test_without_optuna_there_is_a_hint(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'steadyrl[tune]'" in refusal(capsys, *TUNE, *RANGE, "--out", tmp_path)


def test_files_of_settings_are_checked(tmp_path, capsys):
    path = tmp_path / "settings.toml"
    train = ["train", ENV, "--out", tmp_path / "run", "--settings", path]
    path.write_text('agent = "mg"\n[settings]\ngama = 0.9\n')
    assert "unknown setting 'gama'" in refusal(capsys, *train)
    path.write_text('agent = "ppo"\nrate = 1\n')
    assert "rate: a file of settings has agent" in refusal(capsys, *train)
    path.write_text('agent = "ppo"\n')
    for other in ("dqn", "mg"):  # Also the default, if it is given.
        assert f"--agent {other}: " in (line := refusal(capsys, *train, "--agent", other))
        assert "has settings of ppo. Leave out one" in line
    assert "there is no such file" in refusal(capsys, *train[:-1], tmp_path / "nothing.toml")
    assert not (tmp_path / "run").exists()


# Other processes.


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_killed_search_continues(tmp_path, capsys):
    command = [*TUNE, *RANGE, "--trials", "4", "--seeds", "1", "--parallel", "1", "--out", str(tmp_path / "study")]
    started = [sys.executable, "-m", "steadyrl", *command]
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True, env={**os.environ, "NPROC": "1"}) as process:
        for line in process.stderr:
            if "tune: 2 of 4" in line:
                break
        time.sleep(1)
        process.send_signal(signal.SIGKILL)
    main(command)
    assert "4 trials complete" in " ".join(capsys.readouterr().out.split())
    numbers = sorted(path.name for path in Path(tmp_path / "study" / "trials").iterdir())
    assert numbers == ["0000", "0001", "0002", "0003"]


@pytest.mark.slow
def test_trials_on_ray(tmp_path):
    pytest.importorskip("ray")
    found = search(tmp_path, trials=2, seeds=1, on="ray")
    assert [trial.state for trial in found.trials] == ["complete"] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_cartpole_with_the_default_space(tmp_path):
    options = {"trials": 2, "seeds": 1, "timesteps": 2000, "evaluation_episodes": 10, "progress": False}
    found = steadyrl.tune("CartPole-v1", "mg", settings={"hidden": (16,)}, out=tmp_path, **options)
    assert len(found.complete) == 2
    assert found.best.measures["mean"] > 8
