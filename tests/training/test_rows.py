"""Along episodes that are split into rows, everything is as along episodes that are one row each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.engines.host import batch_from_episodes
from steadyrl.training.minibatches import Minibatches
from steadyrl.training.returns import generalized_advantages, rewards_to_go
from steadyrl.training.rows import PART_ROWS, ROW

LENGTHS = np.array([1, ROW - 1, ROW, ROW + 1, 5 * ROW, 300, 2 * ROW, 17])


@pytest.fixture(scope="module")
def both():
    """A batch padded and packed; every step has a reward of its own."""
    n, T = len(LENGTHS), LENGTHS.max()
    mask = (np.arange(T) < LENGTHS[:, None]).astype(float)
    rng = np.random.default_rng(0)
    rewards, observations = rng.normal(size=(n, T)) * mask, rng.normal(size=(n, T, 3)).astype(np.float32)
    last, terminated = rng.normal(size=(n, 3)).astype(np.float32), np.arange(n) % 2 == 0
    episodes = Episodes(observations, rng.integers(3, size=(n, T)), rewards, mask, last, terminated, {})
    padded = EpisodeBatch.of(episodes, 0.97, lambda x: x)
    return padded, padded.packed()


def steps_of(array, batch):
    """[steps, ...]: in the order of episodes and times, without padding."""
    return np.asarray(array)[np.asarray(batch.mask) > 0]


def assert_same(function, both, **tolerance):
    expected, found = (steps_of(jax.jit(function)(batch), batch) for batch in both)
    assert len(found) == LENGTHS.sum()
    np.testing.assert_allclose(found, expected, **{"rtol": 2e-5, "atol": 2e-5, **tolerance})


def test_packed_batches_hold_the_same_steps_in_less_room(both):
    padded, packed = both
    assert packed.mask.shape[1] == ROW
    assert packed.mask.size < 0.5 * padded.mask.size
    for field in ("observations", "actions", "rewards"):
        assert np.array_equal(steps_of(getattr(padded, field), padded), steps_of(getattr(packed, field), packed))
    rows = packed.rows
    times = np.concatenate([np.arange(T) for T in LENGTHS])
    assert np.array_equal(steps_of(rows.times(ROW), packed), times)
    episode = np.broadcast_to(rows.spread(np.arange(len(LENGTHS)))[:, None], packed.mask.shape)
    assert np.array_equal(steps_of(episode, packed), np.repeat(np.arange(len(LENGTHS)), LENGTHS))
    assert np.array_equal(rows.total(jnp.asarray(packed.mask.sum(axis=1))), LENGTHS)
    np.testing.assert_allclose(packed.returns, padded.returns, rtol=1e-5)


def test_sums_along_episodes(both):
    assert_same(lambda batch: rewards_to_go(batch.rewards, 0.97, batch.rows), both)
    assert_same(lambda batch: rewards_to_go(batch.rewards, 1.0, batch.rows), both)
    assert_same(lambda batch: rewards_to_go(batch.rewards, 0.0, batch.rows), both, rtol=0, atol=0)
    assert_same(lambda batch: batch.rows.sum_before(batch.rewards), both)
    assert_same(lambda batch: batch.rows.following(batch.rewards), both, rtol=0, atol=0)
    values = lambda batch: batch.observations[..., 0] * batch.mask  # noqa: E731
    assert_same(lambda batch: generalized_advantages(batch.rewards, values(batch), 0.97, 0.9, batch.rows), both)


def test_steps_that_come_later_in_the_episode(both):
    padded, packed = both
    ahead = np.random.default_rng(1).integers(1, 80, size=padded.mask.shape)
    at_end, rewards = 1000.0 + np.arange(len(LENGTHS)), np.asarray(padded.rewards)
    expected = [
        rewards[i, t + ahead[i, t]] if t + ahead[i, t] < T else at_end[i]
        for i, T in enumerate(LENGTHS)
        for t in range(T)
    ]
    for batch in both:
        of_batch = np.zeros(batch.mask.shape)
        of_batch[np.asarray(batch.mask) > 0] = steps_of(ahead, padded)
        found = batch.rows.later(jnp.asarray(batch.rewards), batch.mask, jnp.asarray(of_batch), jnp.asarray(at_end))
        np.testing.assert_allclose(steps_of(found, batch), expected, rtol=1e-6)
    never = packed.rows.later(packed.rewards, packed.mask, jnp.full(packed.mask.shape, jnp.inf), jnp.asarray(at_end))
    np.testing.assert_array_equal(steps_of(never, packed), np.repeat(at_end, LENGTHS))


def test_what_an_update_sees_of_episodes(both):
    padded, packed = (jax.jit(batch_from_episodes)(batch, 0.97) for batch in both)
    for field in ("returns", "lengths", "squared_rewards_to_go"):
        np.testing.assert_allclose(getattr(packed, field), getattr(padded, field), rtol=1e-4)
    assert_same(lambda batch: batch_from_episodes(batch, 0.97).steps.last, both)
    assert np.asarray(packed.steps.last * packed.steps.mask).sum() == len(LENGTHS)
    np.testing.assert_allclose(packed.steps.returns(0.9), padded.steps.returns(0.9), rtol=1e-4, atol=1e-5)


def test_each_episode_is_folded_over_its_own_rows(both):
    _, packed = both
    rows, mask = jax.tree.map(jnp.asarray, packed.rows), jnp.asarray(packed.mask, jnp.float32)

    def steps_and_parts(i):
        def body(carry, part):
            steps, parts, seen = carry
            own = part.take(mask) * part.own[:, None]
            return steps + own.sum(), parts + 1, part.put(seen, part.take(seen) + own)

        return rows.fold(i, body, (0.0, 0, jnp.zeros_like(mask)))

    steps, parts, seen = jax.jit(jax.vmap(steps_and_parts))(jnp.arange(len(LENGTHS)))
    assert np.array_equal(steps, LENGTHS)
    assert np.array_equal(parts, -(-LENGTHS // (ROW * PART_ROWS)))
    assert np.array_equal(seen.sum(axis=0), mask)  # Each step once, whatever the part before it.


def test_minibatches_do_not_depend_on_the_padding(both):
    drawn = []
    for batch in both:
        mask = jnp.ravel(batch.mask)
        minibatches, number = Minibatches.of(jax.random.key(4), mask, 50), np.cumsum(mask) - 1
        drawn.append([number[minibatches.part(k, 50)[0]] for k in range(int(minibatches.parts) - 1)])
    assert len(drawn[0]) > 10
    assert np.array_equal(*drawn)


def test_batches_that_would_hardly_shrink_stay_as_they_are():
    mask = np.ones((4, 500))
    mask[1, 450:] = 0
    nothing = np.zeros((4, 500, 1), np.float32)
    ends = np.zeros((4, 1)), np.ones(4, bool)
    batch = EpisodeBatch.of(Episodes(nothing, nothing, mask, mask, *ends, {}), 1.0, lambda x: x)
    assert batch.packed() is batch


def test_few_sizes_are_compiled_for():
    """The lengths of a training that begins with short episodes, gets stuck in the air, and ends with landings."""
    rng, sizes, padded_steps, packed_steps, steps = np.random.default_rng(0), set(), 0, 0, 0
    for k in range(600):
        typical, hovering = (90, 0.02) if k < 100 else (400, 0.5) if k < 300 else (250, 0.05)
        lengths = np.minimum(rng.gamma(12, typical / 12, size=16).astype(int) + 50, 1000)
        lengths[rng.random(16) < hovering] = 1000
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(float)
        nothing = np.zeros((*mask.shape, 1), np.float32)
        ends = np.zeros((16, 1)), np.ones(16, bool)
        padded = EpisodeBatch.of(Episodes(nothing, nothing, mask, mask, *ends, {}), 1.0, lambda x: x)
        packed = padded.packed()
        sizes.add(packed.mask.shape)
        steps, padded_steps, packed_steps = (
            steps + lengths.sum(), padded_steps + padded.mask.size, packed_steps + packed.mask.size
        )  # fmt: skip
    assert len(sizes) <= 12
    assert packed_steps < 1.3 * steps < 0.75 * padded_steps
