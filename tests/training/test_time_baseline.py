"""What the other episodes of a batch collect from each time on, against sums over pairs of episodes."""

import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.training.batch import Steps
from steadyrl.training.rows import ROW, Rows
from steadyrl.training.time_baseline import TimeBaseline

LENGTHS = np.array([1, ROW - 1, 2 * ROW, ROW + 1, 80, 17])
T, DISCOUNT = 96, 0.97


def made(packed):
    rng = np.random.default_rng(0)
    mask = np.arange(T) < LENGTHS[:, None]
    rewards = rng.normal(1, 1, size=mask.shape) * mask
    if not packed:
        return rewards, Steps(jnp.zeros(mask.shape), jnp.asarray(rewards, jnp.float32), jnp.asarray(mask, jnp.float32))
    rows = Rows.of(LENGTHS, 14)
    split = np.zeros((2, 14, ROW))
    for k, (i, start) in enumerate(zip(rows.episode, rows.start, strict=True)):
        if start < LENGTHS[i]:
            split[:, k] = rewards[i, start : start + ROW], mask[i, start : start + ROW]
    paid, there = (jnp.asarray(x, jnp.float32) for x in split)
    return rewards, Steps(jnp.zeros(there.shape), paid, there, rows=rows)


def expected(rewards, i, time, others):
    """The mean over the other episodes of their discounted rewards from `time` on."""
    later = rewards[:, min(time, T) :]
    return np.mean([later[j] @ DISCOUNT ** np.arange(later.shape[1]) for j in others if j != i])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_it_is_the_mean_of_the_other_episodes_of_the_group(packed, groups):
    rewards, steps = made(packed)
    baseline = TimeBaseline.of(steps, DISCOUNT, groups)
    members = np.split(np.arange(len(LENGTHS)), groups)
    shape = steps.mask.shape
    episode = np.broadcast_to(np.asarray(steps.rows.spread(jnp.arange(len(LENGTHS))))[:, None], shape)
    times = np.broadcast_to(np.asarray(steps.times), shape)
    ahead = np.random.default_rng(1).choice([0, 1, 7, 50, np.inf], size=shape)
    found, after = np.asarray(baseline.at(ahead)), np.asarray(baseline.after_end(jnp.array([0.0, 5.0, jnp.inf])))
    for k in zip(*np.nonzero(np.asarray(steps.mask)), strict=True):
        i, time = episode[k], int(min(times[k] + ahead[k], T))
        others = next(group for group in members if i in group)
        assert found[k] == pytest.approx(expected(rewards, i, time, others), abs=1e-3)
    for i, length in enumerate(LENGTHS):
        others = next(group for group in members if i in group)
        wanted = [expected(rewards, i, int(min(length + k, T)), others) for k in (0, 5, T)]
        np.testing.assert_allclose(after[i], wanted, atol=1e-3)


def test_an_episode_alone_has_no_baseline():
    steps = Steps(jnp.zeros((1, 3)), jnp.array([[1.0, 2.0, 3.0]]), jnp.ones((1, 3)))
    baseline = TimeBaseline.of(steps, 1.0)
    np.testing.assert_allclose(baseline.at(0), 0, atol=1e-6)
    np.testing.assert_allclose(baseline.after_end(jnp.zeros(1)), 0, atol=1e-6)
