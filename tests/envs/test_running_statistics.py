"""Wrappers that normalize by what they have seen: their statistics would not be those of training at evaluation."""

from functools import partial

import gymnasium as gym
import pytest
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, TimeLimit, TransformReward
from gymnasium.wrappers import vector as vector_wrappers

import steadyrl


def wrapped(*wrappers):
    env = gym.make("CartPole-v1")
    for wrapper in wrappers:
        env = wrapper(env)
    return env


def limited(env):
    return TimeLimit(env, 100)


@pytest.mark.parametrize("around", [(), (limited,)])
@pytest.mark.parametrize(
    ("wrapper", "remedy"), [(NormalizeObservation, "normalise_observations=True"), (NormalizeReward, "TransformReward")]
)
def test_they_are_refused_for_training(wrapper, remedy, around):
    for env in (lambda: wrapped(wrapper, *around), wrapped(wrapper, *around)):
        with pytest.raises(ValueError, match=rf"^{wrapper.__name__}: .*{remedy}"):
            steadyrl.MeanGini(env)


def test_they_are_refused_in_vector_environments():
    inner = gym.vector.SyncVectorEnv([lambda: wrapped(NormalizeObservation)] * 2)
    outer = vector_wrappers.NormalizeObservation(gym.vector.SyncVectorEnv([lambda: wrapped()] * 2))
    for env in (inner, outer, vector_wrappers.NormalizeReward(gym.vector.SyncVectorEnv([lambda: wrapped()] * 2))):
        with pytest.raises(ValueError, match=r"^Normalize"):
            steadyrl.PPO(env)
        env.close()


@pytest.mark.parametrize("wrapper", [NormalizeObservation, NormalizeReward])
def test_they_are_refused_in_other_processes(wrapper):
    env = gym.vector.AsyncVectorEnv([partial(wrapped, wrapper)] * 2, context="spawn")
    with pytest.raises(ValueError, match="NormalizeObservation or NormalizeReward in the vector environment"):
        steadyrl.PPO(env)
    env.close()


def test_they_are_refused_for_a_loaded_agent(tmp_path):
    steadyrl.Reinforce("CartPole-v1", hidden=(4,)).save(tmp_path / "a.steady")
    with pytest.raises(ValueError, match="normalise_observations=True"):
        steadyrl.load(tmp_path / "a.steady", env=lambda: wrapped(NormalizeObservation))


def test_evaluation_warns_where_statistics_start_anew():
    """Any policy may be evaluated; an environment that exists may have the statistics of its training."""
    with pytest.warns(UserWarning, match="NormalizeObservation: its running statistics start anew"):
        steadyrl.evaluate(lambda observation: 0, lambda: wrapped(NormalizeObservation), episodes=2)
    assert steadyrl.evaluate(lambda observation: 0, wrapped(NormalizeObservation), episodes=2).episodes == 2


def test_other_wrappers_are_welcome():
    scaled = TransformReward(limited(wrapped()), lambda reward: reward / 10)
    assert steadyrl.MeanGini(scaled, hidden=(4,)).learn(total_episodes=16, progress_bar=False).episodes == 16
