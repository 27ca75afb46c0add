"""What the scheduler trains together, and that it does not show in the result."""

import dataclasses
import json

import numpy as np
import pytest
from interrupted_runs import MAZE, without_clocks
from long_sweep import results, run_names

from steadyrl import MeanGini, learn_together
from steadyrl.agents.agent import Agent
from steadyrl.base.signals import TrainingInterruptedError
from steadyrl.cli.main import main
from steadyrl.runs.job import run_job
from steadyrl.runs.scheduler import pending_jobs, train_all
from steadyrl.runs.sweep import Sweep
from steadyrl.training.engines import program
from steadyrl.training.engines.engine import DivergedError
from steadyrl.training.run_folder import is_complete, read_config

pytestmark = pytest.mark.optimized  # Five runs in one program, which many tests train to the end.


def sweep(agents=("mg",), env=MAZE, seeds=(0, 5, 1), episodes=100, **settings):
    choices = {name: value if isinstance(value, list) else [value] for name, value in settings.items()}
    return Sweep((env,), {agent: choices for agent in agents}, tuple(seeds), {"episodes": episodes})


def grouped(jobs):
    """The (risk_aversion, seed) of each run of each job."""
    return [[(run.settings.get("risk_aversion"), run.seed) for run in job.runs] for job in jobs]


def test_runs_that_differ_in_numbers_alone_share_a_job(tmp_path):
    jobs = pending_jobs(sweep(risk_aversion=[0.3, 0.6]).cells(tmp_path))
    assert grouped(jobs) == [[(0.3, 0), (0.3, 5), (0.3, 1), (0.6, 0), (0.6, 5)], [(0.6, 1)]]
    assert {(job.plan.vmap_width, job.plan.threads) for job in jobs} == {(5, 1)}
    five = pending_jobs(sweep(seeds=range(5), risk_aversion=[0.3, 0.6]).cells(tmp_path))
    assert [len(job.runs) for job in five] == [5, 5]


def test_unused_slots_repeat_the_last_agent():
    assert [call.tolist() for call in program._assign_slots(7, 5)] == [[0, 1, 2, 3, 4], [5, 6, 6, 6, 6]]


def test_bits_do_not_depend_on_the_slot(monkeypatch):
    """So runs may be grouped in any way, and in another one when they are resumed."""
    results = []
    for slot in range(5):
        call = np.where(np.arange(5) == slot, 0, 1)
        monkeypatch.setattr(program, "_assign_slots", lambda agents, width, call=call: [call])
        agents = [MeanGini(MAZE, seed=7), MeanGini(MAZE, seed=11, risk_aversion=0.4)]
        learn_together(agents, total_episodes=500, progress_bar=False, vmap_width=5)
        results.append(np.asarray(agents[0].learner.theta))
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize(
    "settings",
    [
        {"inner_updates": [1, 2]},
        {"mean": ["vpg", "ppo"]},
        {"estimator": ["paper", "unbiased"]},
    ],
)
def test_runs_of_different_programs_do_not(settings, tmp_path):
    """Whole numbers and choices are what a program is compiled for."""
    jobs = pending_jobs(sweep(**settings).cells(tmp_path))
    (name,) = settings
    assert all(len({run.settings[name] for run in job.runs}) == 1 for job in jobs)
    assert sum(len(job.runs) for job in jobs) == 6


def test_neither_do_agents_and_environments(tmp_path):
    cells = sweep(agents=("mg", "mvo")).cells(tmp_path)
    other = sweep().cells(tmp_path / "other")
    cells += [dataclasses.replace(cell, env_options={"goal_reward": 40}) for cell in other]
    jobs = pending_jobs(cells)
    assert sum(len(job.runs) for job in jobs) == 9
    for job in jobs:
        assert len({run.folder.parent for run in job.runs}) == 1


def test_other_engines_and_budgets_of_steps_train_each_run_alone(tmp_path):
    host = sweep(env="CartPole-v1", risk_aversion=[0.3, 0.6], hidden=(8,)).cells(tmp_path)
    steps = dataclasses.replace(sweep(risk_aversion=[0.3, 0.6]), budget={"timesteps": 100}).cells(tmp_path)
    for cells in (host, steps):
        jobs = pending_jobs(cells)
        assert [len(job.runs) for job in jobs] == [1] * 6
        assert {job.plan.vmap_width for job in jobs} == {1}


def test_a_run_among_others_has_the_bits_of_the_run_alone(tmp_path, in_process):
    together, alone = tmp_path / "together", tmp_path / "alone"
    command = ["sweep", MAZE, "--agents", "mg", "--set", "risk_aversion=0.3,0.6,1.2", "--seeds", "6"]
    main([*command, "--episodes", "100", "--out", str(together)])
    for value in (0.3, 0.6, 1.2):
        for seed in (1, 5):
            cells = sweep(seeds=(seed,), risk_aversion=value).cells(alone)
            assert [len(job.runs) for job in pending_jobs(cells)] == [1]
            assert train_all(cells, alone) == []
    expected = results(alone)
    assert len(expected) == 6
    found = results(together)
    assert len(found) == 18
    assert {name: found[name] for name in expected} == expected
    assert len({agent for agent, _ in found.values()}) == 18
    for name in expected:
        ours, theirs = read_config(together / name), read_config(alone / name)
        assert {key for key in ours if ours[key] != theirs[key]} <= {"command", "started"}


def count_agents(monkeypatch):
    """A list that grows with each agent that is made."""
    made, init = [], Agent.__init__

    def counting(self, *args, **kwargs):
        made.append(self)
        init(self, *args, **kwargs)

    monkeypatch.setattr(Agent, "__init__", counting)
    return made


def test_agents_are_made_once(tmp_path, monkeypatch):
    """One for each cell to find out what is pending, and one for each run to train it."""
    made = count_agents(monkeypatch)
    cells = sweep(risk_aversion=[0.3, 0.6], episodes=50).cells(tmp_path)
    jobs = pending_jobs(cells)
    assert len(made) == len(cells) == 2
    for job in jobs:
        made.clear()
        trained = run_job(job)
        assert len(made) == len(trained) == len(job.runs)
    made.clear()
    assert pending_jobs(cells) == []
    assert len(made) == 2


def test_runs_that_diverge_do_not_stop_the_others_of_their_job(tmp_path, in_process):
    """The others are trained to the end, with the same bits as without them."""
    cells = sweep(policy_learning_rate=[1e-3, 1e20], episodes=100).cells(tmp_path / "both")
    (failed,) = [
        job for job in pending_jobs(cells) if len({run.settings["policy_learning_rate"] for run in job.runs}) == 2
    ]
    failures = train_all(cells, tmp_path / "both")
    assert failed.runs in [failure.job.runs for failure in failures]
    assert all("parameters became infinite or NaN" in failure.reason for failure in failures)
    assert [is_complete(folder) for folder in cells[0].folders] == [True] * 3
    assert not any(folder.exists() for folder in cells[1].folders)  # Nothing was learned.
    good = sweep(policy_learning_rate=1e-3, episodes=100).cells(tmp_path / "good")
    assert train_all(good, tmp_path / "good") == []
    assert results(tmp_path / "both") == results(tmp_path / "good")


def test_a_run_that_diverges_late_keeps_what_it_learned(tmp_path, monkeypatch):
    calls, check = [], program.check_finite

    def diverge_at_second_call(agents, learners):
        calls.append(len(agents))
        if len(calls) == 2:
            raise DivergedError([agents[1]])
        check(agents, learners)

    (whole,) = pending_jobs(sweep(seeds=(0, 1, 2), episodes=1500).cells(tmp_path / "whole"))
    run_job(whole)
    monkeypatch.setattr(program, "check_finite", diverge_at_second_call)
    (job,) = pending_jobs(sweep(seeds=(0, 1, 2), episodes=1500).cells(tmp_path / "out"))
    _, diverged, _ = job.folders
    with pytest.raises(TrainingInterruptedError, match=f"in 1,000 episodes is saved in {diverged}, and the traceback"):
        run_job(job)
    assert calls == [3, 3, 2]
    assert [is_complete(folder) for folder in job.folders] == [True, False, True]
    assert [(folder / "error.txt").exists() for folder in job.folders] == [False, True, False]
    run_job(job)
    for ours, theirs in zip(job.folders, whole.folders, strict=True):
        assert (ours / "checkpoint.steady").read_bytes() == (theirs / "checkpoint.steady").read_bytes()
        assert without_clocks(ours / "metrics.jsonl") == without_clocks(theirs / "metrics.jsonl")


def test_loggers_of_a_sweep(tmp_path, in_process):
    out = tmp_path / "out"
    main(["sweep", MAZE, "--seeds", "2", "--episodes", "100", "--log", "jsonl", "--out", str(out)])
    assert len(run_names(out)) == 2
    for name in run_names(out):
        logged = [json.loads(line)["episodes"] for line in (out / name / "log.jsonl").read_text().splitlines()]
        assert logged == [50, 100] == [record["episodes"] for record in without_clocks(out / name / "metrics.jsonl")]
