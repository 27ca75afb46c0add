"""Runs that are extended to a larger budget end as if they had had it from the start, and say so in their config."""

import dataclasses
import json

import numpy as np
import pytest
from commands import refusal
from interrupted_runs import CASES, MAZE, Killed, assert_same_runs, make_job, raising_at

import steadyrl
from steadyrl.cli.main import main
from steadyrl.runs.job import run_job
from steadyrl.training.run_folder import is_complete, read_config, resume_files

SMALLER = {"compiled": 1000, "gymnasium": 100, "dqn": 8}
"""Whole records; two of those of DQN are merged in the run folder, and it does not end at an evaluation."""


def extended(job, budget, **plan):
    """The job with another budget, which a run with a smaller one is extended to."""
    return dataclasses.replace(job, plan=dataclasses.replace(job.plan, budget=budget, extend=True, **plan))


def smaller_and_whole(case, folder, episodes=None):
    whole = make_job(case, folder / "whole", keep_replay_buffer=True)
    smaller = make_job(
        case,
        folder / "extended",
        budget={"episodes": episodes or SMALLER[case]},
        evaluations=whole.plan.evaluations,
        episodes_per_record=whole.plan.episodes_per_record,
        keep_replay_buffer=True,
    )
    return smaller, whole


@pytest.mark.parametrize("case", [pytest.param("compiled", marks=pytest.mark.optimized), "gymnasium", "dqn"])
def test_an_extended_run_has_the_bits_of_a_longer_one(case, tmp_path):
    smaller, whole = smaller_and_whole(case, tmp_path)
    run_job(whole)
    run_job(smaller)
    assert all(map(is_complete, smaller.folders))
    longer = extended(smaller, whole.plan.budget)
    assert run_job(longer)[0].episodes >= whole.plan.total
    for a, b in zip(longer.folders, whole.folders, strict=True):
        (entry,) = read_config(a)["extensions"]
        assert (entry["from"], entry["to"]) == ({"episodes": SMALLER[case]}, whole.plan.budget)
        assert read_config(a)["budget"] == whole.plan.budget
        config = {name: value for name, value in read_config(a).items() if name not in ("extensions", "started")}
        assert config == {name: value for name, value in read_config(b).items() if name != "started"}
        (a / "config.json").write_bytes((b / "config.json").read_bytes())
    assert_same_runs(longer, whole)
    assert run_job(longer) == []


@pytest.mark.parametrize("call", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_an_extension_may_be_interrupted(call, tmp_path):
    """Here the old budget ends in the middle of a record: parameters are the same nevertheless."""
    smaller, whole = smaller_and_whole("gymnasium", tmp_path, episodes=60)
    run_job(whole)
    run_job(smaller)
    longer = extended(smaller, whole.plan.budget)
    with pytest.raises(Killed):
        run_job(longer, raising_at(call, Killed))
    assert resume_files(longer.folders[0])
    run_job(longer)
    assert (longer.folders[0] / "checkpoint.steady").read_bytes() == (
        whole.folders[0] / "checkpoint.steady"
    ).read_bytes()
    assert len(read_config(longer.folders[0])["extensions"]) == 1


def test_an_interrupted_run_can_be_extended_too(tmp_path):
    smaller, whole = smaller_and_whole("gymnasium", tmp_path, episodes=150)
    run_job(whole)
    with pytest.raises(Killed):
        run_job(smaller, raising_at(2, Killed))
    run_job(extended(smaller, whole.plan.budget))
    assert (smaller.folders[0] / "checkpoint.steady").read_bytes() == (
        whole.folders[0] / "checkpoint.steady"
    ).read_bytes()


def test_a_run_without_its_replay_buffer_is_refused_and_not_touched(tmp_path):
    job = make_job("dqn", tmp_path, budget={"episodes": 5}, evaluations=None)
    run_job(job)
    before = {path.name: path.read_bytes() for path in job.folders[0].iterdir()}
    with pytest.raises(ValueError, match=r"saved without its replay buffer.*--keep-replay-buffer"):
        run_job(extended(job, {"episodes": 9}))
    assert {path.name: path.read_bytes() for path in job.folders[0].iterdir()} == before


def test_smaller_budgets_and_other_units_are_refused(tmp_path):
    job = make_job("compiled", tmp_path, seeds=(5,), budget={"episodes": 100}, evaluations=None)
    run_job(job)
    with pytest.raises(ValueError, match="has a budget of 100 episodes already: an extension needs more"):
        run_job(extended(job, {"episodes": 50}))
    with pytest.raises(ValueError, match=r"its budget is in another unit \(100 episodes\)"):
        run_job(extended(job, {"timesteps": 10_000}))
    assert run_job(extended(job, {"episodes": 100})) == []
    assert "extensions" not in read_config(job.folders[0])


def test_a_budget_of_timesteps(tmp_path):
    smaller, whole = (
        make_job("gymnasium", tmp_path / name, budget={"timesteps": steps}, evaluations=None)
        for name, steps in (("a", 2000), ("b", 6000))
    )
    run_job(whole)
    run_job(smaller)
    run_job(extended(smaller, whole.plan.budget))
    assert (smaller.folders[0] / "checkpoint.steady").read_bytes() == (
        whole.folders[0] / "checkpoint.steady"
    ).read_bytes()


def test_with_a_schedule_the_rest_has_the_step_sizes_of_the_larger_budget(tmp_path, monkeypatch):
    env, agent, settings, engine = CASES["gymnasium"]
    monkeypatch.setitem(CASES, "gymnasium", (env, agent, {**settings, "learning_rate_schedule": "linear"}, engine))
    job = make_job("gymnasium", tmp_path, budget={"episodes": 100}, evaluations=None, episodes_per_record=1)
    run_job(job)
    run_job(extended(job, {"episodes": 200}))
    records = [json.loads(line) for line in (job.folders[0] / "metrics.jsonl").read_text().splitlines()]
    factors = [record["learning_rate_factor"] for record in records]
    first, second = [1.0, 0.75, 0.5, 0.25], [0.5, 0.375, 0.25, 0.125]
    if len(factors) == 4:  # Records of 50 episodes are means of two rounds.
        first, second = [0.875, 0.375], [0.4375, 0.1875]
    assert factors == pytest.approx([*first, *second])


def test_in_python(tmp_path):
    def agent():
        return steadyrl.MeanGini(MAZE, seed=3)

    whole = agent().learn(total_episodes=300, progress_bar=False)
    agent().learn(total_episodes=100, progress_bar=False, out=tmp_path / "run")
    with pytest.raises(FileExistsError, match="Or extend that run"):
        agent().learn(total_episodes=300, progress_bar=False, out=tmp_path / "run")
    longer = agent().learn(total_episodes=300, progress_bar=False, out=tmp_path / "run", extend=True)
    assert longer.episodes == 300
    assert np.array_equal(longer.learner.theta, whole.learner.theta)
    again = agent().learn(total_episodes=300, progress_bar=False, out=tmp_path / "run", extend=True)
    assert np.array_equal(again.learner.theta, whole.learner.theta)
    with pytest.raises(ValueError, match="extend=True: it is about a run folder"):
        agent().learn(total_episodes=300, extend=True)


QUIET = ["--no-progress", "--no-page"]


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", MAZE, "--set", "learning_rate_schedule=linear", "--seed", "4", *QUIET]
    main([*train, "--episodes", "100", "--out", "run"])
    capsys.readouterr()
    main(["train", "--resume-from", "run", "--episodes", "200", *QUIET])
    printed = capsys.readouterr()
    assert "Extending run from 100 to 200 episodes." in printed.err
    assert "continue at 0.5 of their initial values, as in a run of 200 episodes" in printed.err
    assert "mg after 200 episodes" in printed.out
    config = read_config(tmp_path / "run")
    assert config["seed"] == 4
    assert config["extensions"][0]["command"].startswith("steadyrl")
    main(["train", "--resume-from", "run", "--episodes", "200", *QUIET])
    assert "This run is complete already." in capsys.readouterr().out


def test_the_command_explains_mistakes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["train", MAZE, "--episodes", "50", "--out", "run", *QUIET])
    capsys.readouterr()
    resume = ["train", "--resume-from", "run", *QUIET]
    assert "say how far to train, in all: --episodes N" in refusal(capsys, *resume)
    assert "--set: with --resume-from it is that of the run" in refusal(capsys, *resume, "--set", "gamma=0.9")
    assert "--seed: with --resume-from" in refusal(capsys, *resume, "--seed", "3", "--episodes", "100")
    assert "already: an extension needs more" in refusal(capsys, *resume, "--episodes", "20")
    assert "its environment is steadyrl/GuardedMaze-v0, not CartPole-v1" in refusal(capsys, *resume, "CartPole-v1")
    assert "holds no run" in refusal(capsys, "train", "--resume-from", "nothing", "--episodes", "100")
    assert "name an environment" in refusal(capsys, "train")
