"""The file format of agents: a file holds everything, and a damaged or foreign one does no harm."""

import gymnasium as gym
import numpy as np
import pytest
from crafted_files import craft
from safetensors.numpy import save_file

import steadyrl
from steadyrl.envs.guarded_maze import GuardedMazeEnv

ENV = "steadyrl/GuardedMaze-v0"


@pytest.fixture
def trained(tmp_path):
    agent = steadyrl.MeanGini(gym.make(ENV, goal_reward=40), seed=7, risk_aversion=1.5)
    agent.learn(total_episodes=100, progress_bar=False)
    path = tmp_path / "agent.steady"
    agent.save(path)
    return agent, path


def test_a_loaded_agent_equals_the_saved_one_and_learns_on_bit_for_bit(trained):
    agent, path = trained
    for loaded in (steadyrl.load(path), steadyrl.MeanGini.load(path)):
        assert type(loaded) is steadyrl.MeanGini
        assert loaded.settings == agent.settings
        assert (loaded.seed, loaded.episodes, loaded.timesteps) == (agent.seed, agent.episodes, agent.timesteps)
        assert loaded.env.unwrapped.maze.goal_reward == 40
        np.testing.assert_array_equal(loaded.learner.theta, agent.learner.theta)
    agent.learn(total_episodes=100, progress_bar=False)
    loaded.learn(total_episodes=100, progress_bar=False)
    np.testing.assert_array_equal(loaded.learner.theta, agent.learner.theta)
    np.testing.assert_array_equal(loaded.learner.phi, agent.learner.phi)


def test_the_running_state_of_a_measure_is_saved(tmp_path, monkeypatch):
    monkeypatch.setitem(steadyrl.risk.MEASURES, "tamar", steadyrl.risk.tamar(threshold=50, learning_rate=0.01))
    # Without a utility, a measure is of trajectories alone.
    small = {"hidden": (8,), "episodes_per_update": 5, "mean": "vpg", "credit": "trajectory"}
    agent = steadyrl.MeanRisk("CartPole-v1", measure="tamar", risk_aversion=1e-5, seed=1, **small)
    agent.learn(total_episodes=10, progress_bar=False)
    agent.save(tmp_path / "a.steady")
    loaded = steadyrl.load(tmp_path / "a.steady")
    assert loaded.learner.risk == agent.learner.risk != (0, 0)
    for each in (agent, loaded):
        each.learn(total_episodes=5, progress_bar=False)
    assert loaded.learner.risk == agent.learner.risk
    np.testing.assert_array_equal(loaded.learner.theta[0]["weight"], agent.learner.theta[0]["weight"])


def test_another_environment_can_be_passed(trained):
    _, path = trained
    assert steadyrl.load(path, env=ENV).env.unwrapped.maze.goal_reward == 20
    with pytest.raises(ValueError, match="trained on Discrete"):
        steadyrl.load(path, env="FrozenLake-v1")


def test_without_its_environment_an_agent_is_still_a_policy(tmp_path):
    agent = steadyrl.MeanGini(GuardedMazeEnv(), seed=0)  # Not made from an id.
    agent.save(tmp_path / "a.steady")
    loaded = steadyrl.load(tmp_path / "a.steady")
    assert loaded.env is None
    assert loaded.predict(30)[0] in range(4)
    with pytest.raises(ValueError, match="no environment"):
        loaded.learn(total_episodes=50)
    steadyrl.load(tmp_path / "a.steady", env=ENV).learn(total_episodes=50, progress_bar=False)


def test_a_changed_time_limit_is_saved_and_a_wrapper_is_not_ignored(tmp_path):
    short = gym.make("FrozenLake-v1", max_episode_steps=7)
    steadyrl.Reinforce(short).save(tmp_path / "a.steady")
    assert steadyrl.load(tmp_path / "a.steady").env.spec.max_episode_steps == 7
    wrapped = gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), lambda r: 2 * r)
    steadyrl.Reinforce(wrapped).save(tmp_path / "b.steady")
    assert steadyrl.load(tmp_path / "b.steady").env is None


def test_the_wrong_class_names_the_right_one(trained):
    with pytest.raises(ValueError, match=r"holds a MeanGini, not a MVO"):
        steadyrl.MVO.load(trained[1])


def test_damaged_foreign_and_newer_files_get_one_clear_error(trained, tmp_path):
    _, path = trained
    whole = path.read_bytes()
    for part in (whole[:20], whole[: len(whole) // 2], whole[:-1], b"", b"PK\x03\x04 something else"):
        path.write_bytes(part)
        with pytest.raises(ValueError, match="no steadyrl agent"):
            steadyrl.load(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="no steadyrl agent"):
        steadyrl.load(path)
    for change, message in [
        (lambda header, arrays: header.update(format=99), "newer steadyrl"),
        (lambda header, arrays: header.update(agent="sac"), "'sac'"),
        (lambda header, arrays: header["settings"].update(extra=1), "unknown setting 'extra'"),
        (lambda header, arrays: header.pop("seed"), "no steadyrl agent"),
        (lambda header, arrays: arrays.pop("theta"), "altered"),
        (lambda header, arrays: arrays.update(theta=np.zeros((2, 2), np.float32)), "altered"),
    ]:
        path.write_bytes(whole)
        craft(path, change)
        with pytest.raises(ValueError, match=message):
            steadyrl.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        steadyrl.load(tmp_path / "missing.steady")


def test_saving_is_atomic(trained, monkeypatch):
    agent, path = trained
    whole = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        agent.save(path)
    assert path.read_bytes() == whole
    assert [p.name for p in path.parent.iterdir()] == [path.name]
