"""The replay buffer by itself, and what agents store in it, row by row against a log of the environment."""

from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from scipy import stats
from toy_envs import BOX, LIMIT, NUMBERS, Counter, Diary, walk

import steadyrl
from steadyrl.agents import DQN, MVPI, TD3
from steadyrl.agents.td3 import TD3Settings, TD3Update
from steadyrl.training.replay_buffer import ReplayBuffer, TransitionLayout

NEVER = 10**6

pytestmark = pytest.mark.usefixtures("numpys_layers")


def filled(rows, capacity):
    buffer = ReplayBuffer(2, capacity)
    for i in range(rows):
        buffer.add([i, -i])
    return buffer


def test_the_oldest_rows_are_overwritten():
    buffer, latest = ReplayBuffer(2, 5), deque(maxlen=5)
    assert len(buffer) == 0
    for i in range(13):
        buffer.add([i, -i])
        latest.append(i)
        assert (len(buffer), buffer.added) == (len(latest), i + 1)
        assert sorted(buffer.rows[:, 0]) == list(latest)
        np.testing.assert_array_equal(buffer.rows[:, 1], -buffer.rows[:, 0])
        np.testing.assert_array_equal(buffer.rows[:, 0] % 5, np.arange(len(latest)))
        np.testing.assert_array_equal(buffer.latest(3)[:, 0], list(latest)[-3:])
        np.testing.assert_array_equal(buffer.latest(9)[:, 0], list(latest))


@pytest.mark.parametrize(("rows", "capacity"), [(7, 100), (20, 7)], ids=["not full", "full"])
def test_batches_are_drawn_uniformly_and_independently(rows, capacity):
    drawn = filled(rows, capacity).sample(np.random.default_rng(0), 200, 300)
    assert drawn.shape == (200, 300, 2)
    assert drawn.dtype == np.float32
    np.testing.assert_array_equal(drawn[..., 1], -drawn[..., 0])
    numbers = drawn[..., 0].astype(int) - (rows - 7)
    assert set(numbers.ravel()) == set(range(7))
    assert stats.chisquare(np.bincount(numbers.ravel())).pvalue > 1e-3
    # Neighbours in a batch, and those in the same place of the next batch; the same row may come twice.
    for one, other in ((numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])):
        pairs = np.bincount((7 * one + other).ravel(), minlength=49)
        assert stats.chisquare(pairs).pvalue > 1e-3


def test_batches_follow_from_the_generator():
    buffer = filled(20, 20)
    first, same, other = (buffer.sample(np.random.default_rng(seed), 2, 10) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


@pytest.mark.parametrize("rows", [0, 3, 5, 13])
def test_a_restored_buffer_continues_like_the_first(rows):
    buffer, again = filled(rows, 5), ReplayBuffer(2, 5)
    again.restore(buffer.rows.copy(), buffer.added)
    for i in range(4):
        for each in (buffer, again):
            each.add([100 + i, -1])
        np.testing.assert_array_equal(again.rows, buffer.rows)
        draws = [each.sample(np.random.default_rng(i), 2, 8) for each in (buffer, again)]
        np.testing.assert_array_equal(*draws)
    assert again.added == buffer.added == rows + 4


def test_a_million_steps_of_the_half_cheetah_take_less_than_300_mb():
    layout = TD3Update.of(TD3Settings(network="mlp", hidden=(8,)), Box(-9, 9, (18,)), Box(-1, 1, (6,))).layout
    buffer = ReplayBuffer(layout.width, 10**6)
    assert buffer.nbytes < 300e6
    row = np.arange(44, dtype=np.float32)
    buffer.add(row)
    np.testing.assert_array_equal(buffer.rows, [row])


@pytest.mark.parametrize("memory", [1e9, 1e15])
def test_a_buffer_too_large_for_memory_is_one_clear_error(memory, monkeypatch):
    """Whether the machine has less, or says that it has enough and its system refuses."""
    monkeypatch.setattr("steadyrl.base.memory._memory", lambda: memory)
    monkeypatch.setattr("numpy.empty", lambda shape, dtype=None: np.zeros(shape) if 0 in shape else refuse())
    with pytest.raises(ValueError, match=r"buffer_size=2000000000: .* GB.* Lower buffer_size\.") as error:
        ReplayBuffer(11, 2 * 10**9).allocate()
    assert "\n" not in str(error.value)


def refuse():
    raise MemoryError


def test_a_policy_can_be_used_where_its_buffer_does_not_fit(tmp_path, monkeypatch):
    DQN("CartPole-v1", hidden=(4,)).save(tmp_path / "a.steady", replay_buffer=False)
    monkeypatch.setattr("steadyrl.base.memory._memory", lambda: 1e6)
    agent = steadyrl.load(tmp_path / "a.steady")
    assert agent.predict(np.zeros(4))[0] in (0, 1)
    with pytest.raises(ValueError, match="Lower buffer_size"):
        agent.learn(total_episodes=1, progress_bar=False)


def test_a_row_is_split_into_the_parts_it_was_made_of():
    layout = TransitionLayout(inputs=3, outputs=4)
    row = layout.row(np.arange(3), np.arange(4).reshape(2, 2) + 10, 20, np.arange(3) + 30, True)
    parts = layout.parts(row[None, None], 7)
    assert row.shape == (layout.width,)
    expected = [[0, 1, 2], [10, 11, 12, 13], 20, [30, 31, 32], 1]
    for part, numbers in zip(parts, expected, strict=False):
        np.testing.assert_array_equal(part[0, 0], numbers)
    assert parts.timesteps == 7


def normalized(action):
    return ((np.asarray(action, float) - BOX.low) / (BOX.high - BOX.low) * 2 - 1).ravel()


def played(kind, space, episodes=30, make=lambda env: env, **settings):
    """An agent that only collects, and the log of its environment."""
    diary = Diary(walk(space))
    quiet = {"hidden": (8,), "buffer_size": 1000, "learning_starts": NEVER, **settings}
    agent = kind(make(diary), seed=5, **quiet).learn(total_episodes=episodes, progress_bar=False)
    return agent, diary.pages


def stored(agent):
    return agent.algorithm.layout.parts(agent.replay_buffer.rows, agent.timesteps)


AGENTS = [(DQN, NUMBERS), (TD3, BOX), (MVPI, NUMBERS), (MVPI, BOX)]
each_agent = pytest.mark.parametrize(("kind", "space"), AGENTS, ids=["dqn", "td3", "mvpi on dqn", "mvpi on td3"])


@each_agent
@pytest.mark.parametrize("bootstrap_on_truncation", [True, False])
def test_the_buffer_holds_the_transitions_of_the_environment(kind, space, bootstrap_on_truncation):
    """Rewards unchanged, MVPI's too; at the end of an episode its last observation, not the first of the next one.

    A truncation is not terminal, unless it is not bootstrapped from; a termination at the time limit is terminal.
    """
    agent, pages = played(kind, space, bootstrap_on_truncation=bootstrap_on_truncation)
    before, actions, rewards, after, terminated, truncated = map(np.array, zip(*pages, strict=True))
    assert {(True, False), (False, True), (True, True)} <= {*zip(terminated.tolist(), truncated.tolist(), strict=True)}
    assert len(pages) == agent.timesteps == len(agent.replay_buffer) == agent.replay_buffer.added
    ours = stored(agent)
    np.testing.assert_array_equal(ours.observations, before)
    np.testing.assert_array_equal(ours.next_observations, after)
    np.testing.assert_array_equal(ours.rewards, rewards.astype(np.float32))
    terminal = terminated if bootstrap_on_truncation else terminated | truncated
    np.testing.assert_array_equal(ours.terminal, terminal)
    expected = [normalized(a) if space is BOX else [a - space.start] for a in actions]
    np.testing.assert_allclose(ours.actions, expected, atol=1e-6)
    assert all(space.contains(action) for action in actions)
    over = np.flatnonzero(terminated | truncated)
    np.testing.assert_array_equal(after[over, 0], np.diff(over, prepend=-1).astype(np.float32) / 10)


@pytest.mark.parametrize("kind", [TD3, MVPI])
def test_actions_are_stored_as_they_were_clipped_to_the_bounds(kind):
    """With so much noise most of them are at a bound."""
    never = {"train_freq": NEVER, "learning_starts": 1}
    agent, pages = played(kind, BOX, exploration_noise=5.0, **never)
    actions = stored(agent).actions
    np.testing.assert_allclose(actions, [normalized(page[1]) for page in pages], atol=1e-6)
    assert np.abs(actions).max() == 1
    assert (np.abs(actions[LIMIT:]) == 1).mean() > 0.5


def test_a_vector_environment_fills_the_buffer_alike():
    single, _ = played(DQN, NUMBERS, make=lambda diary: diary.env)
    # The second environment is idle, and resets itself.
    vector, _ = played(DQN, NUMBERS, make=lambda diary: gym.vector.SyncVectorEnv([lambda: walk(NUMBERS)] * 2))
    assert vector.engine == "vector"
    np.testing.assert_array_equal(vector.replay_buffer.rows, single.replay_buffer.rows)


@pytest.mark.parametrize(("kind", "width"), [("dict", 4), ("discrete", 6), ("image", 2)])
def test_observations_are_stored_as_features(kind, width):
    agent = DQN(lambda: Counter(kind), hidden=(8,), learning_starts=NEVER, buffer_size=100, seed=1)
    agent.learn(total_episodes=8, progress_bar=False)
    ours = stored(agent)
    assert ours.observations.shape == ours.next_observations.shape == (agent.timesteps, width)
    steps = np.round(
        ours.rewards - ours.actions[:, 0] / 10
    )  # Before each step: a reward is that number and a tenth of the action.
    if kind == "discrete":  # From -1, before the first step.
        np.testing.assert_array_equal(ours.observations, np.eye(6)[steps.astype(int)])
        np.testing.assert_array_equal(ours.next_observations, np.eye(6)[steps.astype(int) + 1])
    else:
        where, scale = {"dict": (3, 1), "image": (0, 255)}[kind]
        np.testing.assert_allclose(ours.observations[:, where], steps / scale, rtol=1e-6)
        np.testing.assert_allclose(ours.next_observations[:, where], (steps + 1) / scale, rtol=1e-6)
    first = np.flatnonzero(steps == 0)
    ends = [i - 1 for i in [*first[1:], len(steps)] if ours.terminal[i - 1]]
    np.testing.assert_array_equal(ours.terminal.nonzero()[0], ends)


@pytest.mark.parametrize("before", [2, 7])
def test_rollback_restores_overwritten_rows(before):
    buffer = ReplayBuffer(1, 5)
    for number in range(before):
        buffer.add([number])
    added, rows = buffer.commit(), buffer.rows.copy()
    for number in range(100, 108):
        buffer.add([number])
    buffer.rollback(added)
    assert buffer.added == before
    assert (buffer.rows == rows).all()
