"""Spaces of all kinds in real tasks: LunarLander is learned in other spaces, within seconds; CarRacing has images."""

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.spaces import MultiBinary, MultiDiscrete
from real_envs import lander_with_instruments, lander_with_levels, lander_with_switches, race

import steadyrl
from steadyrl.envs import spaces

FAST = {"hidden": (64,), "learning_rate": 3e-3, "episodes_per_update": 16, "gamma": 0.98}


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.parametrize("make", [lander_with_levels, lander_with_switches, lander_with_instruments])
def test_landing_is_learned(make):
    """192 episodes of at most 200 steps: an untrained policy crashes, a trained one has learned to brake."""
    agent = steadyrl.PPO(make, seed=0, **FAST)
    before = agent.play(20, seed=1).rewards.sum(axis=1).mean()
    agent.learn(total_episodes=192, progress_bar=False)
    after = agent.play(20, seed=1).rewards.sum(axis=1).mean()
    assert after > before + 100
    assert after > 0


def test_what_the_lander_does_in_other_spaces():
    plain = gym.make("LunarLander-v3", continuous=True, max_episode_steps=200)
    for make, action, continuous in [
        (lander_with_levels, np.array([2, 0]), [1, -1]),
        (lander_with_switches, np.int8([0, 0, 1]), [-1, 1]),
    ]:
        env = make()
        assert isinstance(env.action_space, MultiDiscrete | MultiBinary)
        for one in (env, plain):
            one.reset(seed=3)
        np.testing.assert_array_equal(env.step(action)[0], plain.step(np.float32(continuous))[0])


def test_nested_observations_are_rows_of_numbers():
    env = lander_with_instruments()
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    row = spaces.flat(env.observation_space, observation)
    body = observation["body"]
    np.testing.assert_array_equal(row[:6], np.concatenate([body["position"], body["tilt"], body["velocity"]]))
    np.testing.assert_array_equal(row[6:], [1, 0, 0])


@pytest.mark.slow
def test_two_updates_from_the_images_of_a_race():
    small = {"hidden": (32,), "episodes_per_update": 3, "inner_updates": 1}
    agent = steadyrl.MeanGini(lambda: race(steps=16), mean="ppo", seed=0, **small)
    start = agent.learner
    agent.learn(total_episodes=6, progress_bar=False)
    assert (agent.settings.network, agent.timesteps) == ("cnn", 6 * 16)
    for before, after in [(start.theta, agent.learner.theta), (start.phi, agent.learner.phi)]:
        moved = jax.tree.map(lambda x, y: bool(np.isfinite(y).all() and np.any(x != y)), before, after)
        assert all(jax.tree.leaves(moved)), "every layer has learned, the convolutions too"
    episodes = agent.play(2, seed=0)
    assert (episodes.observations.dtype, episodes.observations.shape) == (np.uint8, (2, 16, 96 * 96 * 3))
    assert episodes.observations.std() > 10
