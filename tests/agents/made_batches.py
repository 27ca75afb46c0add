"""Batches of made-up episodes of known lengths, and the comparison of updates from them."""

import gymnasium as gym
import jax
import numpy as np

from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.dial import round_levels


class Spaces(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Box(-1, 1, (2,))


def padded_batch(agent, lengths):
    """A batch for an agent in `Spaces`, in which returns differ and every third episode is truncated."""
    n, T = len(lengths), lengths.max()
    mask, rng = (np.arange(T) < lengths[:, None]).astype(float), np.random.default_rng(1)
    observations, actions = (rng.normal(size=(n, T, d)).astype(np.float32) for d in (3, 2))
    rewards = (rng.normal(size=(n, T)) + observations[..., 0] + rng.normal(size=(n, 1))) * mask
    last, terminated = rng.normal(size=(n, 3)).astype(np.float32), np.arange(n) % 3 > 0
    levels = round_levels(agent.algorithm, 5, n)
    if levels is not None:
        column = np.broadcast_to(levels[:, None, None], (n, T, 1))
        observations = np.concatenate([observations, column], axis=-1)
        last = np.concatenate([last, levels[:, None]], axis=-1)
    episodes = Episodes(observations, actions, rewards, mask, last, terminated, {})
    return EpisodeBatch.of(episodes, agent.gamma, lambda x: x, levels)


def assert_updates_agree(learner, expected, found):
    """Learners and metrics after two updates of `learner`, up to rounding."""
    assert expected[1].keys() == found[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(found[1][name], value, rtol=2e-3, atol=2e-5, err_msg=name)
    assert int(expected[1]["updates"]) > 0
    for (path, start), one, other in zip(
        jax.tree.leaves_with_path(learner), jax.tree.leaves(expected[0]), jax.tree.leaves(found[0]), strict=True
    ):
        moved = np.abs(np.asarray(one, float) - np.asarray(start, float)).max(initial=0)
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=5e-3 * moved + 1e-7, err_msg=str(path))
