"""`Agent.learn` with a run folder, with several callbacks and with loggers."""

import json

import numpy as np
import pytest
from interrupted_runs import MAZE, without_clocks

import steadyrl
from steadyrl.base.signals import TrainingInterruptedError
from steadyrl.cli.main import main
from steadyrl.training.run_folder import is_complete, read_config, resume_files

EPISODES = 300
COMMAND = ["train", MAZE, "--agent", "mg", "--set", "risk_aversion=1.5", "--seed", "3", "--episodes", str(EPISODES)]


def new_agent(**settings):
    return steadyrl.MeanGini(MAZE, **{"seed": 3, "risk_aversion": 1.5, **settings})


def learn(agent, out, **more):
    return agent.learn(total_episodes=EPISODES, out=out, progress_bar=False, **more)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_same_run(one, other):
    assert files(one) == files(other) == ["checkpoint.steady", "config.json", "metrics.jsonl"]
    assert is_complete(one)
    assert (one / "checkpoint.steady").read_bytes() == (other / "checkpoint.steady").read_bytes()
    assert without_clocks(one / "metrics.jsonl") == without_clocks(other / "metrics.jsonl")
    assert len(without_clocks(one / "metrics.jsonl")) == EPISODES // 50


@pytest.fixture(scope="module")
def commanded(tmp_path_factory):
    """The folder of the same run by `steadyrl train`."""
    out = tmp_path_factory.mktemp("command") / "run"
    main([*COMMAND, "--out", str(out), "--no-progress", "--no-page"])
    return out


def stop_after(episodes, error=None):
    """A callback that raises an error, or returns False, after so many episodes."""

    def callback(local, world):
        if local["self"].episodes >= episodes:
            if error is not None:
                raise error
            return False
        return None

    return callback


def test_a_run_folder_is_that_of_the_command(commanded, tmp_path):
    agent = learn(new_agent(), str(tmp_path / "run"))
    assert_same_run(tmp_path / "run", commanded)
    ours, theirs = read_config(tmp_path / "run"), read_config(commanded)
    assert ours.keys() == theirs.keys()
    assert {name for name in ours if ours[name] != theirs[name]} <= {"command", "started"}
    loaded = steadyrl.load(tmp_path / "run" / "checkpoint.steady")
    np.testing.assert_array_equal(loaded.learner.theta, agent.learner.theta)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("the wheel came off")])
def test_the_same_script_resumes_after_an_interruption(error, commanded, tmp_path):
    out = tmp_path / "run"
    raised = KeyboardInterrupt if error is KeyboardInterrupt else TrainingInterruptedError
    with pytest.raises(raised, match=r"What was learned in 150 episodes is saved in .*run"):
        learn(new_agent(), out, callback=stop_after(150, error))
    assert not is_complete(out)
    assert resume_files(out)
    started = read_config(out)["started"]
    agent, seen = new_agent(), []
    learn(agent, out, callback=lambda local, world: seen.append(local["self"].episodes))
    assert seen == [200, 250, 300]
    assert (agent.episodes, read_config(out)["started"]) == (EPISODES, started)
    assert_same_run(out, commanded)


def test_a_complete_run_is_loaded(commanded, tmp_path):
    before = {name: (commanded / name).read_bytes() for name in files(commanded)}
    called = []
    agent = learn(new_agent(), commanded, callback=lambda *_: called.append(1))
    expected = steadyrl.load(commanded / "checkpoint.steady")
    assert (agent.episodes, agent.timesteps) == (expected.episodes, expected.timesteps) == (EPISODES, agent.timesteps)
    np.testing.assert_array_equal(agent.learner.theta, expected.learner.theta)
    assert not called
    assert {name: (commanded / name).read_bytes() for name in files(commanded)} == before


def test_an_agent_that_has_learned_cannot_begin_a_run_folder(tmp_path):
    agent = new_agent().learn(total_episodes=50, progress_bar=False)
    with pytest.raises(ValueError, match=r"this agent has already learned from 50 episodes\. Make a new agent"):
        learn(agent, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert agent.episodes == 50


@pytest.mark.parametrize("other", [{"risk_aversion": 0.5}, {"seed": 4}])
def test_another_run_is_refused(other, commanded):
    before = {name: (commanded / name).read_bytes() for name in files(commanded)}
    (name,) = other
    with pytest.raises(FileExistsError, match=f"already holds a run with other .*{name}"):
        learn(new_agent(**other), commanded)
    assert {name: (commanded / name).read_bytes() for name in files(commanded)} == before


def test_another_budget_is_refused(commanded):
    with pytest.raises(FileExistsError, match=r"other budget \(episodes 300, here 350\)"):
        new_agent().learn(total_episodes=350, out=commanded, progress_bar=False)


def test_a_callback_that_stops_ends_the_run_as_complete(tmp_path):
    out = tmp_path / "run"
    agent = learn(new_agent(), out, callback=stop_after(150))
    assert is_complete(out)
    assert not resume_files(out)
    assert agent.episodes == 150
    assert learn(new_agent(), out).episodes == 150


def test_a_replay_buffer_survives_an_interruption(tmp_path):
    small = {"hidden": (8,), "learning_starts": 20, "batch_size": 8, "train_freq": 5, "buffer_size": 50, "seed": 1}

    def train(out, **more):
        return steadyrl.DQN("CartPole-v1", **small).learn(200, out=out, progress_bar=False, **more)

    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", callback=stop_after(4, KeyboardInterrupt))
    train(tmp_path / "run")
    whole, resumed = ((tmp_path / name / "checkpoint.steady").read_bytes() for name in ("whole", "run"))
    assert whole == resumed


def test_callbacks_are_called_in_order_and_any_of_them_stops():
    for answers, expected in (
        ([None, None], 300),
        ([None, False], 50),
        ([False, None], 50),
        ([np.False_, None], 50),
        ([0, None], 300),
    ):
        calls = []

        def callback(number, answer, calls=calls):
            return lambda local, world: (calls.append((local["self"].episodes, number)), answer)[1]

        agent = new_agent().learn(
            total_episodes=EPISODES, callback=[callback(*each) for each in enumerate(answers)], progress_bar=False
        )
        assert agent.episodes == expected
        assert calls == [(episodes, number) for episodes in range(50, expected + 1, 50) for number in (0, 1)]


def test_no_callbacks_are_none():
    assert new_agent().learn(total_episodes=50, callback=[], progress_bar=False).episodes == 50


def test_loggers_write_into_the_run_folder(tmp_path):
    learn(new_agent(), tmp_path / "run", loggers=["jsonl"])
    logged = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    recorded = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert logged == recorded


@pytest.mark.parametrize("loggers", [["tensorbord"], "tensorbord"])
def test_an_unknown_logger_is_found_before_anything_is_written(loggers, tmp_path):
    with pytest.raises(ValueError, match=r"unknown logger 'tensorbord'\. Did you mean 'tensorboard'\?"):
        learn(new_agent(), tmp_path / "run", loggers=loggers)
    assert not (tmp_path / "run").exists()
