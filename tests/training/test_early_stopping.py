"""Early stopping: the rule, the option of the command, the callback, and what run folders record."""

import dataclasses
import json

import pytest
from commands import refusal
from interrupted_runs import MAZE, Killed, make_job, raising_at

import steadyrl
from steadyrl.callbacks import EvaluateEvery, StopWhen
from steadyrl.cli.main import main
from steadyrl.runs.job import run_job
from steadyrl.runs.scheduler import pending_jobs
from steadyrl.training.early_stopping import EarlyStopping
from steadyrl.training.run_folder import is_complete, read_config

QUIET = ["--no-progress", "--no-page"]


@pytest.mark.parametrize(
    ("rule", "scores", "stops_after"),
    [
        (EarlyStopping(patience=2), [1, 2, 2, 1, 5], 4),
        (EarlyStopping(patience=2), [3, 1, 4, 1, 5], None),
        (EarlyStopping(patience=2, min_improvement=1), [1, 1.9, 2.1, 3, 3.05], 5),
        # Small steps add up: they are compared with the last improvement, not with the evaluation before.
        (EarlyStopping(patience=2, min_improvement=1), [1, 1.6, 2.2, 2.8, 3.4], None),
        (EarlyStopping(target=4), [1, 5, 2], 2),
        (EarlyStopping(patience=1, target=9), [1, 2, 0, 9], 3),
    ],
)
def test_the_rule(rule, scores, stops_after):
    stops = [n for n in range(len(scores) + 1) if rule.reason(scores[:n])]
    assert (stops[0] if stops else None) == stops_after


def test_the_score_of_a_rule():
    assert EarlyStopping(target=0, risk_aversion=0.5).score(10, 4) == 8


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "give patience"),
        ({"patience": 0}, "it counts evaluations"),
        ({"patience": 2, "min_improvement": -1}, "at least 0"),
        ({"target": float("nan")}, "a score is a number"),
        ({"target": 1, "min_improvement": 1}, "needs patience"),
    ],
)
def test_rules_without_meaning_are_refused(fields, reason):
    with pytest.raises(ValueError, match=reason):
        EarlyStopping(**fields)


def stopping_job(case, folder, rule, **plan):
    evaluations = {"every": 30, "episodes": 5}
    return make_job(case, folder, seeds=(5,), evaluations=evaluations, early_stopping=rule, **plan)


def test_a_run_stops_and_says_why(tmp_path):
    job = stopping_job("gymnasium", tmp_path, EarlyStopping(patience=1, min_improvement=1e6))
    (agent,) = run_job(job)
    assert 60 <= agent.episodes < 180  # The second evaluation cannot improve by that much.
    config = read_config(job.folders[0])
    assert config["stopped_early"]["episodes"] == agent.episodes
    assert "has not improved" in config["stopped_early"]["reason"]
    assert config["early_stopping"] == dataclasses.asdict(job.plan.early_stopping)
    assert is_complete(job.folders[0])
    assert run_job(job) == []


@pytest.mark.parametrize("case", ["gymnasium", *(pytest.param(c, marks=pytest.mark.slow) for c in ("compiled", "dqn"))])
def test_an_interrupted_run_stops_at_the_same_place(case, tmp_path):
    rule = EarlyStopping(patience=2, min_improvement=1e6)
    budget = {"episodes": 20 if case == "dqn" else 1000}
    whole, interrupted = (
        stopping_job(case, tmp_path / name, rule, budget=budget, episodes_per_record=1) for name in "ab"
    )
    if case == "dqn":
        whole, interrupted = (
            dataclasses.replace(job, plan=dataclasses.replace(job.plan, evaluations={"every": 3, "episodes": 2}))
            for job in (whole, interrupted)
        )
    run_job(whole)
    for call in (2, 1):
        with pytest.raises(Killed):
            run_job(interrupted, raising_at(call, Killed))
    run_job(interrupted)
    a, b = whole.folders[0], interrupted.folders[0]
    assert read_config(a)["stopped_early"] == read_config(b)["stopped_early"]
    assert (a / "checkpoint.steady").read_bytes() == (b / "checkpoint.steady").read_bytes()
    assert (a / "evaluations.jsonl").read_text() == (b / "evaluations.jsonl").read_text()


def test_a_run_that_uses_up_its_budget_says_nothing(tmp_path):
    job = stopping_job("gymnasium", tmp_path, EarlyStopping(target=1e9), budget={"episodes": 50})
    (agent,) = run_job(job)
    assert agent.episodes == 50
    assert "stopped_early" not in read_config(job.folders[0])


def test_runs_that_may_stop_are_not_trained_in_one_program(tmp_path):
    rule = EarlyStopping(patience=1)
    together = make_job("compiled", tmp_path, seeds=(1, 2))
    apart = dataclasses.replace(together, plan=dataclasses.replace(together.plan, early_stopping=rule))
    assert [len(job.runs) for job in pending_jobs([together])] == [2]
    assert [len(job.runs) for job in pending_jobs([apart])] == [1, 1]


def test_an_extension_goes_past_the_stop(tmp_path):
    job = stopping_job("gymnasium", tmp_path, EarlyStopping(patience=1, min_improvement=1e6))
    run_job(job)
    plan = dataclasses.replace(job.plan, budget={"episodes": 200}, early_stopping=None, extend=True)
    (agent,) = run_job(dataclasses.replace(job, plan=plan))
    assert agent.episodes == 200
    config = read_config(job.folders[0])
    assert "stopped_early" not in config
    assert "has not improved" in config["extensions"][0]["stopped_early"]["reason"]


def test_the_command(tmp_path, capsys):
    out = str(tmp_path / "run")
    options = ["--evaluate-every", "100", "--evaluation-episodes", "20", "--patience", "2", "--min-improvement", "1e6"]
    command = ["train", MAZE, "--episodes", "5000", *options, "--score", "mean_gini", *QUIET, "--out", out]
    main(command)
    printed = capsys.readouterr().out
    assert "Stopped early after 300 episodes: the score has not improved on " in printed
    rule = read_config(tmp_path / "run")["early_stopping"]
    agent = steadyrl.load(out)
    assert rule["risk_aversion"] == agent.settings.risk_aversion > 0
    scores = [json.loads(line) for line in (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()]
    assert [record["episodes"] for record in scores] == [100, 200, 300]
    for record in scores:
        spread = record["undiscounted_gini_deviation"]
        assert record["score"] == pytest.approx(record["return"] - rule["risk_aversion"] * spread)
    main(command)
    assert "This run is complete already." in capsys.readouterr().out


def test_the_command_explains_mistakes(tmp_path, capsys):
    train = ["train", MAZE, *QUIET, "--out", str(tmp_path / "run")]
    assert "--patience: it is decided by evaluations" in refusal(capsys, *train, "--patience", "2")
    assert "--stop-at: it is decided by evaluations" in refusal(capsys, *train, "--stop-at", "2")
    every = [*train, "--evaluate-every", "50"]
    assert "unknown score 'median'" in refusal(capsys, *every, "--stop-at", "2", "--score", "median")
    assert "patience=0" in refusal(capsys, *every, "--patience", "0")
    assert "needs patience" in refusal(capsys, *every, "--min-improvement", "2")
    assert "a range of lambdas" in refusal(capsys, *every, "--set", "risk_aversion=0:3")
    neutral = refusal(capsys, *every, "--agent", "reinforce", "--patience", "2", "--score", "mean_gini")
    assert "reinforce has no risk_aversion" in neutral
    assert not (tmp_path / "run").exists()


def scores_of(*values):
    remaining = iter(values)
    return lambda report: next(remaining)


def test_the_callback_has_patience(tmp_path):
    stop = EvaluateEvery(
        50, episodes=2, patience=2, min_improvement=1.0, criterion=scores_of(1, 3, 3.5, 2, 9), verbose=False
    )
    agent = steadyrl.MeanGini(MAZE, seed=1)
    agent.learn(total_episodes=1000, callback=stop, progress_bar=False, out=tmp_path / "run")
    assert agent.episodes == 200
    assert "has not improved on 3 by more than 1 in 2" in read_config(tmp_path / "run")["stopped_early"]["reason"]


def test_the_callback_counts_on_in_a_resumed_run(tmp_path):
    def learn(criterion, killed_at=None):
        def kill(local, world):
            if local["self"].episodes == killed_at:
                raise KeyboardInterrupt

        stop = EvaluateEvery(100, episodes=2, patience=2, criterion=criterion, verbose=False)
        agent = steadyrl.MeanGini(MAZE, seed=1)
        agent.learn(total_episodes=1000, callback=[stop, kill], progress_bar=False, out=tmp_path / "run")
        return agent

    # Ctrl-C, which writes a checkpoint; evaluations were at 100 and 200 episodes.
    with pytest.raises(KeyboardInterrupt):
        learn(scores_of(5, 4), killed_at=250)
    agent = learn(scores_of(3))
    assert agent.episodes == 300
    assert "has not improved on 5 in 2" in read_config(tmp_path / "run")["stopped_early"]["reason"]


def test_other_callbacks_are_recorded_too(tmp_path):
    for name, callback, reason in (
        ("a", StopWhen("return", at_least=-1e9), "return was at least -1e+09 in 1 consecutive records"),
        ("b", lambda local, world: False, "a callback returned False"),
    ):
        agent = steadyrl.MeanGini(MAZE, seed=1)
        agent.learn(total_episodes=500, callback=callback, progress_bar=False, out=tmp_path / name)
        stopped = {"reason": reason, "episodes": agent.episodes, "timesteps": agent.timesteps}
        assert read_config(tmp_path / name)["stopped_early"] == stopped
