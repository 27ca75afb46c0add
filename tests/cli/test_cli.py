"""The commands, as users type them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import refusal as fails

import steadyrl
from steadyrl.agents import AGENTS
from steadyrl.cli.main import main
from steadyrl.training.run_folder import read_config, read_metrics

ENV = "steadyrl/GuardedMaze-v0"


@pytest.fixture
def run(tmp_path, capsys):
    out = tmp_path / "run"
    main(["train", ENV, "--agent", "mg", "--set", "risk_aversion=1.5", "--set", "estimator=paper", "--env-set",
          "goal_reward=40", "--seed", "3", "--episodes", "200", "--out", str(out), "--no-progress"])  # fmt: skip
    assert f"steadyrl evaluate {out}" in capsys.readouterr().out
    return out


def test_train_writes_a_run_folder(run):
    config = read_config(run)
    assert config["agent"] == "mg"
    assert config["env"] == {"id": ENV, "options": {"goal_reward": 40}}
    assert config["settings"]["risk_aversion"] == 1.5
    assert config["settings"]["estimator"] == "paper"
    assert config["settings"]["gamma"] == 0.99
    assert (config["seed"], config["engine"], config["budget"]) == (3, "compiled", {"episodes": 200})
    assert {"python", "jax", "numpy", "gymnasium", "steadyrl"} <= config["versions"].keys()
    metrics = read_metrics(run)
    assert [record["episodes"] for record in metrics] == [50, 100, 150, 200]
    assert {"return", "discounted_return", "gini_deviation", "variance", "goal_rate", "red_visit_rate"} <= metrics[
        0
    ].keys()
    agent = steadyrl.load(run / "checkpoint.steady")
    assert agent.episodes == 200
    assert agent.timesteps == metrics[-1]["timesteps"]


def test_the_command_trains_as_the_library_does(run):
    import gymnasium as gym
    import numpy as np

    agent = steadyrl.MeanGini(gym.make(ENV, goal_reward=40), risk_aversion=1.5, estimator="paper", seed=3)
    agent.learn(total_episodes=200, progress_bar=False)
    np.testing.assert_array_equal(agent.learner.theta, steadyrl.load(run / "checkpoint.steady").learner.theta)


def test_evaluate_takes_a_folder_or_a_file(run, capsys):
    main(["evaluate", str(run), "--episodes", "50", "--seed", "2"])
    table = capsys.readouterr().out
    assert "50 episodes, seed 2" in table
    assert "gini_deviation" in table
    assert "goal_rate" in table
    main(["evaluate", str(run / "checkpoint.steady"), "--episodes", "50", "--seed", "2", "--json"])
    report = json.loads(capsys.readouterr().out)
    agent = steadyrl.load(run / "checkpoint.steady")
    expected = steadyrl.evaluate(agent, agent.env, 50, seed=2)
    assert report["mean"]["value"] == expected.mean.value
    main(["evaluate", str(run), "--episodes", "50", "--env-set", "goal_reward=1000", "--json"])
    assert json.loads(capsys.readouterr().out)["maximum"] > 500


def test_evaluate_draws(run, tmp_path, capsys):
    main(["evaluate", str(run), "--episodes", "50", "--histogram", str(tmp_path / "returns.png")])
    assert "episodes by undiscounted return" in capsys.readouterr().out
    assert (tmp_path / "returns.png").read_bytes().startswith(b"\x89PNG")


def test_compare_takes_two_runs(run, tmp_path, capsys):
    other = tmp_path / "other"
    main(["train", ENV, "--agent", "reinforce", "--episodes", "50", "--out", str(other), "--no-progress"])
    capsys.readouterr()
    assert "not trained in the same environment" in fails(capsys, "compare", str(run), str(other))
    arguments = ["compare", str(run), str(other), "--env", ENV, "--episodes", "50"]
    main(arguments)
    table = capsys.readouterr().out
    assert f"a: mg of {run}" in table
    assert "50 episodes each" in table
    main([*arguments, "--json"])
    a, b = (steadyrl.load(folder / "checkpoint.steady") for folder in (run, other))
    expected = steadyrl.compare(a, b, ENV, 50)
    assert json.loads(capsys.readouterr().out)["mean"] == expected.mean._asdict()


def test_nothing_is_overwritten(run, capsys):
    before = (run / "checkpoint.steady").read_bytes()
    assert "already holds a run" in fails(capsys, "train", ENV, "--episodes", "50", "--out", str(run))
    assert (run / "checkpoint.steady").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", ENV, "--agent", "mgg"], "unknown agent 'mgg'. Did you mean 'mg'?"),
        (["train", "steadyrl/GuardedMaze-v9"], "Did you mean 'steadyrl/GuardedMaze-v0'?"),
        (["train", ENV, "--set", "risk_aversoin=1"], "Did you mean 'risk_aversion'?"),
        (["train", ENV, "--set", "risk_aversion"], "write name=value"),
        (
            ["train", ENV, "--set", "risk_aversion=much"],
            "risk_aversion=much: a number, or a range such as (0, 3) or 0:3, is needed",
        ),
        (["train", ENV, "--set", "gamma=2"], "gamma=2.0: it must be at most 1"),
        (["train", ENV, "--set", "lambda=1"], "Did you mean 'risk_aversion'?"),
        (["train", ENV, "--set", "lam=1"], "Did you mean 'risk_aversion'?"),
        (["sweep", ENV, "--agents", "mg,q_learning", "--set", "lam=1"], "Did you mean 'risk_aversion'?"),
        (["train", ENV, "--set", "net_arch=[64,64]"], "Did you mean 'hidden'?"),
        (["train", ENV, "--set", "policy_kwargs={}"], "Did you mean 'hidden'?"),
        (["train", ENV, "--set", "n_steps=5"], "Set episodes_per_update"),
        (["train", ENV, "--set", "delta=1"], "Did you mean 'ratio_range'?"),
        (["train", ENV, "--set", "M=1"], "Did you mean 'inner_updates'?"),
        (["train", ENV, "--set", "alpha=1"], "Did you mean 'policy_learning_rate'?"),
        (["train", ENV, "--agent", "QLearning", "--set", "lr=1"], "Did you mean 'q_learning_rate'?"),
        (["train", ENV, "--env-set", "goal_rewrad=1"], "Did you mean 'goal_reward'?"),
        (["train", ENV, "--env-set", "layout=[1]"], "layout is list, not text"),
        (["train", "maze"], "Did you mean 'steadyrl/GuardedMaze-v0'?"),
        (["train", "nope:Env-v0"], "there is no module 'nope'"),
        (["trian", ENV], "unknown command 'trian'. Did you mean 'train'?"),
        (["train", ENV, "--env-set", "layout=S.X"], "is not a kind of cell"),
        (["train", ENV, "--episodes", "10", "--timesteps", "10"], "not both"),
        (["train", ENV, "--episodes", "0"], "at least 1"),
        (["train", ENV, "--log", "tensorbord"], "unknown logger 'tensorbord'. Did you mean 'tensorboard'?"),
        (["reproduce", "maze", "--log", "jsnl"], "unknown logger 'jsnl'. Did you mean 'jsonl'?"),
        (["evaluate", "nowhere"], "nowhere: there is no such file"),
        (["evaluate", "."], "there is no checkpoint.steady in it"),
        (["compare", "nowhere", "else"], "nowhere: there is no such file"),
        (["reproduce", "maz"], "unknown experiment 'maz'. Did you mean 'maze'?"),
        (["reproduce", "maze", "--agents", "mg,mvoo"], "unknown method 'mvoo'. Did you mean 'mvo'?"),
        (["reproduce", "maze", "--seeds", "0"], "--seeds 0"),
        (["agents", "mvoo"], "Did you mean 'mvo'?"),
    ],
)
def test_a_mistake_gets_one_line_and_writes_nothing(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *arguments)
    assert list(tmp_path.rglob("*")) == []


def test_agents_are_listed_with_their_settings(capsys):
    main(["agents"])
    listing = capsys.readouterr().out
    main(["agents", "mg"])
    settings = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    helped = capsys.readouterr().out
    for name in AGENTS:
        assert name in listing
    assert "steadyrl agents" in helped
    assert "risk_aversion = 0.5" in settings
    main(["agents", "MeanGini"])
    assert capsys.readouterr().out == settings


@pytest.mark.parametrize("name", ["MG", "MeanGini", "mean-gini"])
def test_agents_by_other_spellings_and_their_classes(name, tmp_path):
    main(["train", ENV, "--agent", name, "--episodes", "5e1", "--out", str(tmp_path / "run"), "--no-progress"])
    assert read_config(tmp_path / "run")["agent"] == "mg"
    assert read_config(tmp_path / "run")["budget"] == {"episodes": 50}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (["risk_aversion=1.40"], "mg,risk_aversion=1.4"),
        (["risk_aversion=1"], "mg,risk_aversion=1"),
        (["risk_aversion=1.0", "gamma=0.9"], "mg,gamma=0.9,risk_aversion=1"),
        (["gamma=9e-1", "risk_aversion=1"], "mg,gamma=0.9,risk_aversion=1"),
        (["hidden=[8,8]"], "mg,hidden=8x8"),
        (["max_grad_norm=0.5", "mean=ppo"], "mg,max_gradient_norm=0.5,mean=ppo"),
        (["time_out_ends=false", "mean=ppo"], "mg,bootstrap_on_truncation=True,mean=ppo"),
        (["time_out_ends=true", "mean=ppo"], "mg,bootstrap_on_truncation=False,mean=ppo"),
    ],
)
@pytest.mark.filterwarnings("ignore:the setting time_out_ends is now called:DeprecationWarning")
def test_the_default_folder_is_named_by_what_is_set(settings, name, monkeypatch):
    jobs = []
    monkeypatch.setattr("steadyrl.runs.job.run_job", lambda job, listeners: jobs.append(job) or [])
    main(["train", ENV, *(f"--set={each}" for each in settings)])
    assert jobs[0].folders == (Path("runs").absolute() / f"GuardedMaze-v0-{name}-seed0",)


@pytest.mark.parametrize("option", [["--log", "jsonl"], ["--log", "JSONL,jsonl"]])
def test_loggers_by_name(option, tmp_path):
    out = tmp_path / "run"
    main(["train", ENV, "--episodes", "100", "--no-progress", "--out", str(out), *option])
    logged = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [record["episodes"] for record in logged] == [50, 100]
    assert [record["return"] for record in logged] == [record["return"] for record in read_metrics(out)]


@pytest.mark.parametrize("text", ["1.5", "ten", "inf", "nan"])
def test_a_count_is_whole(text, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", ENV, "--episodes", text])
    assert stop.value.code == 2
    assert f"'{text}' is not a whole number" in capsys.readouterr().err


def test_stopping_keeps_what_was_learned(tmp_path, request):
    out = tmp_path / "run"
    arguments = ["train", ENV, "--episodes", "100000000", "--out", str(out), "--no-progress"]
    # A test run in the background may have been started with Ctrl-C ignored.
    heed_ctrl_c = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{heed_ctrl_c}; from steadyrl.cli.main import main; main()", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    request.addfinalizer(process.kill)  # Whatever fails below, it must end.
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 90
    while not (metrics.exists() and metrics.read_text().count("\n") > 30):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert f"is saved in {out}" in error.splitlines()[-1]
    assert steadyrl.load(out / "checkpoint.steady").episodes == read_metrics(out)[-1]["episodes"] > 0
