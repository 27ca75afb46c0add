"""Training whose episodes are played in worker processes: the same results, and errors for what cannot have workers."""

import dataclasses
import json
from functools import partial

import gymnasium as gym
import pytest
from commands import refusal
from interrupted_runs import EPISODIC, assert_same_runs, make_job, raising_at
from toy_envs import NUMBERS, Faulty, walk

import steadyrl
from steadyrl.base.seeding import training_episode_seed
from steadyrl.cli.main import main
from steadyrl.rollouts import worker_count
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.runs.job import run_job
from steadyrl.training.run_folder import read_config

MAZE = "steadyrl/GuardedMaze-v0"


def test_interrupted_with_workers_and_resumed_without(tmp_path):
    whole, interrupted = (make_job("gymnasium", tmp_path / name, evaluations=None) for name in ("whole", "interrupted"))
    run_job(whole)
    with pytest.raises(KeyboardInterrupt):
        run_job(dataclasses.replace(interrupted, workers=1), raising_at(2, KeyboardInterrupt))
    run_job(interrupted)
    assert_same_runs(interrupted, whole)
    (one,), (other,) = interrupted.folders, whole.folders
    assert (read_config(one)["workers"], read_config(other)["workers"]) == (1, 0)


@pytest.mark.slow
def test_the_command_with_workers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(worker_count, "step_seconds", lambda env: 1e-5)
    command = ["train", "CartPole-v1", "--set", "hidden=8", "--set", "episodes_per_update=25", "--episodes", "50"]
    ways = ("0", "2", "auto")
    for workers in ways:
        main([*command, "--no-progress", "--workers", workers, "--out", str(tmp_path / workers)])
    assert len({(tmp_path / workers / "checkpoint.steady").read_bytes() for workers in ways}) == 1
    assert "Workers: none, they would not pay." in capsys.readouterr().err
    main([*command, "--no-progress", "--out", str(tmp_path / "2")])
    assert "complete already" in capsys.readouterr().out


@pytest.mark.slow
def test_an_error_in_a_worker_is_the_same_line():
    make, lines = partial(Faulty, "nan reward", wrong_seed=training_episode_seed(0, 3)), []
    for workers in (0, 1):
        with pytest.raises(FaultyEnvironmentError) as stop:
            steadyrl.PPO(make, workers=workers, **EPISODIC).learn(total_episodes=25, progress_bar=False)
        lines.append(str(stop.value))
    assert lines[0] == lines[1]
    assert "reward nan at step 3 of episode 3" in lines[0]


def make_cartpole():
    return gym.make("CartPole-v1")


def local_network(inputs):
    """Of a class that other processes cannot import."""

    class Same:
        outputs = inputs

        def init(self, key):
            return []

        def apply(self, parameters, x):
            return x

        apply_numpy = apply

    return Same()


REFUSED = {
    "a network of a local class": (
        lambda: steadyrl.PPO("CartPole-v1", network=local_network, workers=2),
        "the policy cannot be sent to another process",
    ),
    "an object": (
        lambda: steadyrl.PPO(make_cartpole(), workers=2),
        "an environment object cannot be copied. Pass an id",
    ),
    "a lambda": (lambda: steadyrl.PPO(lambda: make_cartpole(), workers=2), "cannot be sent to another process"),
    "a compiled program": (lambda: steadyrl.MeanGini(MAZE, workers=2), "the engine here is 'compiled'"),
    "a replay buffer": (lambda: steadyrl.DQN(partial(walk, NUMBERS), workers=2), "dqn learns within episodes"),
    "a negative number": (lambda: steadyrl.PPO("CartPole-v1", workers=-1), "workers=-1: a number of processes"),
    "a fraction": (lambda: steadyrl.PPO("CartPole-v1", workers=1.5), "workers=1.5: pass a number of processes"),
    "a switch": (lambda: steadyrl.PPO("CartPole-v1", workers=True), "workers=True: pass a number of processes"),
    "a word": (lambda: steadyrl.PPO("CartPole-v1", workers="many"), "0 for none, or 'auto'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, reason = REFUSED[case]
    with pytest.raises(ValueError, match="workers=") as stop:
        make()
    assert reason in str(stop.value)
    assert len(str(stop.value).splitlines()) == 1


@pytest.mark.parametrize(("seconds", "expected"), [(1e-3, 2), (1e-5, 0)])
def test_auto_takes_workers_where_the_environment_is_slow(seconds, expected, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    monkeypatch.setattr(worker_count, "step_seconds", lambda env: seconds)
    assert steadyrl.PPO("CartPole-v1", workers="auto").workers == expected
    assert steadyrl.PPO("CartPole-v1", workers="auto", episodes_per_update=1).workers == 0, "a batch of one"
    assert steadyrl.PPO(make_cartpole(), workers="auto").workers == 0, "no copies of an object"
    assert steadyrl.MeanGini(MAZE, workers="auto").workers == 0
    assert steadyrl.DQN("CartPole-v1", workers="auto", buffer_size=10).workers == 0


def test_the_measurement_steps_and_resets():
    env = gym.wrappers.RecordEpisodeStatistics(make_cartpole())
    assert 0 < worker_count.step_seconds(env, limit=0.05) < 0.05
    assert env.episode_count > 1


def test_the_command_refuses_in_one_line(capsys, tmp_path):
    out = ["--out", tmp_path / "run"]
    assert refusal(capsys, "train", MAZE, "--workers", "2", *out).startswith("steadyrl: workers=2: they are for")
    assert "--workers 'x' is not a whole number" in refusal(capsys, "train", MAZE, "--workers", "x", *out)
    assert not (tmp_path / "run").exists()


def test_the_number_of_workers_is_no_setting():
    agent = steadyrl.PPO("CartPole-v1", workers=3)
    assert agent.workers == 3
    assert "workers" not in json.dumps(dataclasses.asdict(agent.settings))
