"""Files with the policy alone: they act as the whole agent does, are small, and refuse to learn."""

import gymnasium as gym
import numpy as np
import pytest

import steadyrl
from steadyrl.training import checkpoint

SMALL = {"hidden": (8,), "episodes_per_update": 3}
REPLAY = {"hidden": (8,), "learning_starts": 10, "batch_size": 4, "buffer_size": 500}
AGENTS = {
    "table": lambda: steadyrl.MeanGini("steadyrl/GuardedMaze-v0", seed=3, risk_aversion=1.4),
    "vpg": lambda: steadyrl.Reinforce("CartPole-v1", seed=3, normalise_observations=True, **SMALL),
    "ppo": lambda: steadyrl.MeanGini("Pendulum-v1", seed=3, mean="ppo", **SMALL),
    "dqn": lambda: steadyrl.DQN("CartPole-v1", seed=3, **REPLAY),
    "mvpi on a table": lambda: steadyrl.MVPI("steadyrl/GuardedMaze-v0", seed=3, risk_aversion=0.2),
    "mvpi on td3": lambda: steadyrl.MVPI("Pendulum-v1", seed=3, risk_aversion=0.2, **REPLAY),
}


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_the_policy_alone_acts_as_the_whole_agent(make, tmp_path):
    agent = make()
    agent.learn(total_episodes=3, progress_bar=False)
    agent.save(tmp_path / "whole.steady")
    agent.save(tmp_path / "policy.steady", policy_only=True)
    assert (tmp_path / "policy.steady").stat().st_size < (tmp_path / "whole.steady").stat().st_size
    names = checkpoint.read(tmp_path / "policy.steady").arrays
    assert {name.split("/")[0] for name in names} <= {"theta", "seen"}
    loaded = steadyrl.load(tmp_path / "policy.steady")
    assert (loaded.seed, loaded.episodes, loaded.settings) == (3, agent.episodes, agent.settings)
    env = gym.make(agent.env.spec.id)
    for deterministic in (False, True):
        ours, theirs = (
            steadyrl.evaluate(one, env, episodes=3, seed=1, deterministic=deterministic).returns
            for one in (agent, loaded)
        )
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="saved with its policy alone, which acts but cannot learn"):
        loaded.learn(total_episodes=3)
    loaded.save(tmp_path / "again.steady")
    assert (tmp_path / "again.steady").read_bytes() == (tmp_path / "policy.steady").read_bytes()


def test_a_policy_of_two_layers_of_256_fits_into_a_repository(tmp_path):
    env = gym.make("steadyrl/HalfCheetah-v0")
    agent = steadyrl.MeanGini(env, mean="ppo", hidden=(256, 256), seed=0)
    agent.save(tmp_path / "policy.steady", policy_only=True)
    assert (tmp_path / "policy.steady").stat().st_size < 300_000


def test_a_policy_with_missing_arrays_is_an_error(tmp_path):
    from safetensors.numpy import load_file, save_file

    agent = AGENTS["ppo"]()
    agent.save(tmp_path / "whole.steady")
    agent.save(tmp_path / "policy.steady", policy_only=True)
    from safetensors import safe_open

    with safe_open(tmp_path / "policy.steady", "numpy") as file:
        metadata = file.metadata()
    arrays = load_file(tmp_path / "policy.steady")
    arrays.pop(next(iter(arrays)))
    save_file(arrays, tmp_path / "policy.steady", metadata)
    with pytest.raises(ValueError, match="is damaged"):
        steadyrl.load(tmp_path / "policy.steady")


def test_a_policy_for_a_range_needs_a_lambda(tmp_path):
    agent = steadyrl.MeanGini("CartPole-v1", risk_aversion=(0, 2), **{"hidden": (8,)})
    with pytest.raises(ValueError, match="acts once one of them is chosen"):
        agent.save(tmp_path / "policy.steady", policy_only=True)
