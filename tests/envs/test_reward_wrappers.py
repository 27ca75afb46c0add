"""Clipped and bent rewards: refused, because risk is that of the environment's own returns."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from commands import refusal
from gymnasium.wrappers import ClipReward, TimeLimit, TransformReward
from gymnasium.wrappers import vector as vector_wrappers

import steadyrl


def cartpole():
    return gym.make("CartPole-v1")


def test_clipping_wrappers_are_refused():
    two = gym.vector.SyncVectorEnv([cartpole] * 2)
    inside = gym.vector.SyncVectorEnv([lambda: ClipReward(cartpole(), -1, 1)] * 2)
    for env in (
        ClipReward(cartpole(), -1, 1),
        lambda: TimeLimit(ClipReward(cartpole(), 0, 1), 100),
        vector_wrappers.ClipReward(two, -1, 1),
        inside,
    ):
        with pytest.raises(ValueError, match=r"^ClipReward: clipped rewards change the law of the returns"):
            steadyrl.PPO(env)
    two.close()
    inside.close()


class ClipRewardEnv(gym.RewardWrapper):
    """As in the Atari wrappers of Stable-Baselines3."""

    def reward(self, reward):
        return np.sign(reward)


def test_clipping_wrappers_of_others_are_refused_by_name():
    with pytest.raises(ValueError, match=r"^ClipRewardEnv: clipped rewards change the law of the returns"):
        steadyrl.PPO(TimeLimit(ClipRewardEnv(cartpole()), 100))


@pytest.mark.parametrize("function", [lambda r: np.clip(r, -1, 1), np.sign, lambda r: r**2, lambda r: max(r, 0)])
def test_other_transforms_get_a_warning(function):
    with pytest.warns(UserWarning, match=r"TransformReward: its function of the reward is not of the form a \* r \+ b"):
        steadyrl.Reinforce(TransformReward(cartpole(), function), hidden=(8,))


@pytest.mark.parametrize("function", [lambda r: 0.01 * r, lambda r: 2 * r - 1e5, lambda r: r / 3 + 0.1])
def test_scaling_is_accepted(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = steadyrl.Reinforce(TransformReward(cartpole(), function), hidden=(8,), episodes_per_update=2)
        agent.learn(total_episodes=2, progress_bar=False)
    steps = agent.history[-1]["length"]
    assert agent.history[-1]["return"] == pytest.approx(steps * function(1.0))


@pytest.mark.parametrize("name", ["clip_reward", "reward_clip", "norm_reward", "normalize_reward"])
@pytest.mark.parametrize("kind", [steadyrl.MeanGini, steadyrl.DQN, steadyrl.TD3])
def test_settings_are_refused_with_the_reason(name, kind):
    with pytest.raises(ValueError, match=rf"^{name}: there is no such setting, because .* returns") as refused:
        kind("Pendulum-v1" if kind is steadyrl.TD3 else "CartPole-v1", **{name: True})
    assert "\n" not in str(refused.value)


def test_the_command_refuses_them_before_there_is_a_folder(tmp_path, capsys):
    command = ["train", "CartPole-v1", "--agent", "mg", "--set", "clip_reward=1", "--out", str(tmp_path / "run")]
    assert "clip_reward: there is no such setting, because clipping changes the law" in refusal(capsys, *command)
    assert not (tmp_path / "run").exists()
