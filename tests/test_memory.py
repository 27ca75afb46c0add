"""The replay memory by itself, and what agents put into it, row by row against a diary of the environment."""

from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from scipy import stats
from toy_envs import BOX, LIMIT, NUMBERS, Counter, Diary, walk

from steadyrl.agents import DQN, MVPI, TD3
from steadyrl.agents.replay import memory_of
from steadyrl.agents.td3 import TD3Settings, TwinDelayed
from steadyrl.memory import Layout, Memory

NEVER = 10**6

pytestmark = pytest.mark.usefixtures("numpys_layers")


def filled(rows, capacity):
    memory = Memory(2, capacity)
    for i in range(rows):
        memory.add([i, -i])
    return memory


def test_the_oldest_are_forgotten_and_each_row_has_its_place():
    memory, latest = Memory(2, 5), deque(maxlen=5)
    assert len(memory) == 0
    for i in range(13):
        memory.add([i, -i])
        latest.append(i)
        assert (len(memory), memory.added) == (len(latest), i + 1)
        assert sorted(memory.rows[:, 0]) == list(latest)
        np.testing.assert_array_equal(memory.rows[:, 1], -memory.rows[:, 0])
        np.testing.assert_array_equal(memory.rows[:, 0] % 5, np.arange(len(latest)))


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


def test_the_generator_decides_which():
    memory = filled(20, 20)
    first, same, other = (memory.sample(np.random.default_rng(seed), 2, 10) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


@pytest.mark.parametrize("rows", [0, 3, 5, 13])
def test_a_restored_memory_goes_on_like_the_first(rows):
    memory, again = filled(rows, 5), Memory(2, 5)
    again.restore(memory.rows.copy(), memory.added)
    for i in range(4):
        for each in (memory, again):
            each.add([100 + i, -1])
        np.testing.assert_array_equal(again.rows, memory.rows)
        draws = [each.sample(np.random.default_rng(i), 2, 8) for each in (memory, again)]
        np.testing.assert_array_equal(*draws)
    assert again.added == memory.added == rows + 4


def test_a_million_steps_of_the_half_cheetah_take_less_than_300_mb():
    settings = TD3Settings(buffer_size=10**6).completed(tabular=False)
    memory = memory_of(TwinDelayed.of(settings, Box(-9, 9, (18,)), Box(-1, 1, (6,))))
    assert memory.nbytes < 300e6
    row = np.arange(44, dtype=np.float32)
    memory.add(row)
    np.testing.assert_array_equal(memory.rows, [row])


@pytest.mark.parametrize("buffer_size", [10**14, 10**16])
def test_more_than_there_is_room_for_is_one_clear_error(buffer_size):
    with pytest.raises(ValueError, match=r"buffer_size=1000+: .* GB\. Lower buffer_size\.") as error:
        DQN("CartPole-v1", buffer_size=buffer_size)
    assert "\n" not in str(error.value)


def test_the_parts_of_a_row_are_where_they_were_put():
    layout = Layout(inputs=3, outputs=4)
    row = layout.row(np.arange(3), np.arange(4).reshape(2, 2) + 10, 20, np.arange(3) + 30, True)
    parts = layout.parts(row[None, None], 7)
    assert row.shape == (layout.width,)
    expected = [[0, 1, 2], [10, 11, 12, 13], 20, [30, 31, 32], 1]
    for part, numbers in zip(parts, expected, strict=False):
        np.testing.assert_array_equal(part[0, 0], numbers)
    assert parts.timesteps == 7


def in_halves_of_the_range(action):
    return ((np.asarray(action, float) - BOX.low) / (BOX.high - BOX.low) * 2 - 1).ravel()


def played(kind, space, episodes=30, make=lambda env: env, **settings):
    """An agent that only collects, and the diary of its environment."""
    diary = Diary(walk(space))
    quiet = {"hidden": (8,), "buffer_size": 1000, "learning_starts": NEVER, **settings}
    agent = kind(make(diary), seed=5, **quiet).learn(total_episodes=episodes, progress_bar=False)
    return agent, diary.pages


def remembered(agent):
    return agent.algorithm.layout.parts(agent.memory.rows, agent.timesteps)


AGENTS = [(DQN, NUMBERS), (TD3, BOX), (MVPI, NUMBERS), (MVPI, BOX)]
each_agent = pytest.mark.parametrize(("kind", "space"), AGENTS, ids=["dqn", "td3", "mvpi on dqn", "mvpi on td3"])


@each_agent
@pytest.mark.parametrize("time_out_ends", [False, True])
def test_the_memory_holds_what_happened(kind, space, time_out_ends):
    """Rewards as they were paid, MVPI's too; at an episode's end what was seen last, not what the next one starts with.

    A time-out is no end, unless that is asked for; an episode that ends of its own at its time limit has ended.
    """
    agent, pages = played(kind, space, time_out_ends=time_out_ends)
    before, actions, rewards, after, terminated, truncated = map(np.array, zip(*pages, strict=True))
    assert {(True, False), (False, True), (True, True)} <= {*zip(terminated.tolist(), truncated.tolist(), strict=True)}
    assert len(pages) == agent.timesteps == len(agent.memory) == agent.memory.added
    ours = remembered(agent)
    np.testing.assert_array_equal(ours.observations, before)
    np.testing.assert_array_equal(ours.next_observations, after)
    np.testing.assert_array_equal(ours.rewards, rewards.astype(np.float32))
    np.testing.assert_array_equal(ours.ends, terminated | truncated if time_out_ends else terminated)
    kept = [in_halves_of_the_range(a) if space is BOX else [a - space.start] for a in actions]
    np.testing.assert_allclose(ours.actions, kept, atol=1e-6)
    assert all(space.contains(action) for action in actions)
    over = np.flatnonzero(terminated | truncated)
    np.testing.assert_array_equal(after[over, 0], np.diff(over, prepend=-1).astype(np.float32) / 10)


@pytest.mark.parametrize("kind", [TD3, MVPI])
def test_actions_are_remembered_as_they_were_taken_within_the_bounds(kind):
    """With so much noise most of them are at a bound, where the environment takes them from."""
    never = {"train_freq": NEVER, "learning_starts": 1}
    agent, pages = played(kind, BOX, exploration_noise=5.0, **never)
    actions = remembered(agent).actions
    np.testing.assert_allclose(actions, [in_halves_of_the_range(page[1]) for page in pages], atol=1e-6)
    assert np.abs(actions).max() == 1
    assert (np.abs(actions[LIMIT:]) == 1).mean() > 0.5


def test_a_vector_environment_is_remembered_alike():
    single, _ = played(DQN, NUMBERS, make=lambda diary: diary.env)
    # What is beside the one episode is idle, and starts anew by itself.
    beside, _ = played(DQN, NUMBERS, make=lambda diary: gym.vector.SyncVectorEnv([lambda: walk(NUMBERS)] * 2))
    assert beside.engine == "vector"
    np.testing.assert_array_equal(beside.memory.rows, single.memory.rows)


@pytest.mark.parametrize(("kind", "width"), [("dict", 4), ("discrete", 6), ("image", 2)])
def test_observations_are_remembered_as_networks_see_them(kind, width):
    agent = DQN(lambda: Counter(kind), hidden=(8,), learning_starts=NEVER, buffer_size=100, seed=1)
    agent.learn(total_episodes=8, progress_bar=False)
    ours = remembered(agent)
    assert ours.observations.shape == ours.next_observations.shape == (agent.timesteps, width)
    steps = np.round(ours.rewards - ours.actions[:, 0] / 10)  # Before each step; a reward is that and a tenth.
    if kind == "discrete":  # From -1, which is before the first step.
        np.testing.assert_array_equal(ours.observations, np.eye(6)[steps.astype(int)])
        np.testing.assert_array_equal(ours.next_observations, np.eye(6)[steps.astype(int) + 1])
    else:
        where = {"dict": 3, "image": 0}[kind]
        np.testing.assert_array_equal(ours.observations[:, where], steps)
        np.testing.assert_array_equal(ours.next_observations[:, where], steps + 1)
    first = np.flatnonzero(steps == 0)
    np.testing.assert_array_equal(ours.ends.nonzero()[0], [i - 1 for i in [*first[1:], len(steps)] if ours.ends[i - 1]])


@pytest.mark.parametrize("before", [2, 7])
def test_an_episode_can_be_forgotten_even_when_the_memory_is_full(before):
    memory = Memory(1, 5)
    for number in range(before):
        memory.add([number])
    kept, rows = memory.keep(), memory.rows.copy()
    for number in range(100, 108):
        memory.add([number])
    memory.forget_since(kept)
    assert memory.added == before
    assert (memory.rows == rows).all()
