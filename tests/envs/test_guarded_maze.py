"""The Guarded Maze against its rules written out by hand, the paper's numbers, and itself in another form."""

import importlib
import math
from collections import deque

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from side_by_side import play_alone

import steadyrl.envs
from steadyrl.envs.guarded_maze import PAPER_LAYOUT, GuardedMazeEnv, Maze
from steadyrl.envs.guarded_maze.paths import shortest_paths

ID = "steadyrl/GuardedMaze-v0"
UP, DOWN, LEFT, RIGHT = range(4)
WHITE_PATH = [UP] * 5 + [RIGHT] * 5 + [DOWN]
SHORT_PATH = [RIGHT] * 5 + [UP] * 4
GAMMA = 0.999
TWO_WHITE_PATHS = """
    . G R
    S . .
"""
NO_WHITE_PATH = "S.RG\n..##"
RED_PROBABILITIES = (0.5, 0.2, 0.3)  # all different, so that a reward with another's probability shows
RED_DRAWS = {-15: 0.5, -1: 0.2, 13: 0.3}
RED = 34
"""The red cell of the paper's layout: row 5, column 4."""


def play(env, actions, seed=0):
    """The transitions of one episode, each (observation, reward, terminated, truncated, info)."""
    env.reset(seed=seed)
    return [env.step(action) for action in actions]


def actions_to(maze, cell):
    """The actions of a shortest way from the start to `cell`, found on the MDP itself."""
    ways = {maze.start: []}
    queue = deque(ways)
    while queue:
        here = queue.popleft()
        for action in range(4):
            there = int(maze.mdp.next_state[here, action, 0])
            if there not in ways and maze.live[there]:
                ways[there] = [*ways[here], action]
                queue.append(there)
    return ways[cell]


def outcome_by_hand(layout, cell, action):
    """The next cell, and the kind of the cell that the step ended in."""
    rows = ["".join(row.split()) for row in layout.strip().splitlines()]
    row, column = divmod(cell, len(rows[0]))
    row += {UP: -1, DOWN: 1}.get(action, 0)
    column += {LEFT: -1, RIGHT: 1}.get(action, 0)
    if not (0 <= row < len(rows) and 0 <= column < len(rows[0])) or rows[row][column] == "#":
        row, column = divmod(cell, len(rows[0]))
    return row * len(rows[0]) + column, rows[row][column]


def distinct(maze, cell, action):
    """The outcomes of a pair that can happen: {(next cell, reward, ends): probability}."""
    mdp, outcomes = maze.mdp, {}
    for k in np.flatnonzero(mdp.probability[cell, action]):
        pair = cell, action, k
        key = int(mdp.next_state[pair]), float(mdp.reward[pair]), bool(mdp.ends[pair])
        outcomes[key] = outcomes.get(key, 0) + float(mdp.probability[pair])
    return outcomes


def discounted(rewards):
    return math.fsum(GAMMA**t * reward for t, reward in enumerate(rewards))


# The Gymnasium environment


@pytest.mark.parametrize("options", [{}, {"layout": NO_WHITE_PATH, "red_rewards": (5,), "red_probabilities": (1,)}])
def test_passes_gymnasiums_checker(options):
    check_env(gym.make(ID, **options).unwrapped)


def test_registering_twice_is_harmless():
    importlib.reload(steadyrl.envs)
    assert gym.spec(ID).max_episode_steps is None  # the horizon is the maze's own, not a wrapper's


def test_spaces_and_options():
    env = gym.make(ID, goal_reward=40, red_rewards=[-2, 2], red_probabilities=[0.5, 0.5], horizon=7).unwrapped
    assert env.observation_space == gym.spaces.Discrete(36)
    assert env.action_space == gym.spaces.Discrete(4)
    assert env.maze == Maze(goal_reward=40, red_rewards=(-2, 2), red_probabilities=(0.5, 0.5), horizon=7)


def test_same_seed_same_episode():
    env = gym.make(ID)
    actions = [RIGHT, RIGHT, RIGHT] + [RIGHT, LEFT] * 20
    rewards = [[step[1] for step in play(env, actions, seed)] for seed in (3, 3, 4)]
    assert rewards[0] == rewards[1]
    assert rewards[0] != rewards[2]


@pytest.mark.parametrize("action", [4, -1, 1.0, np.array([1]), "up"])
def test_an_action_that_is_no_move_is_named(action):
    env = GuardedMazeEnv()
    env.reset()
    with pytest.raises(ValueError, match=r"not a move in the maze.*0 up, 1 down, 2 left, 3 right"):
        env.step(action)


@pytest.mark.parametrize("action", [UP, np.int32(UP), np.array(UP), jnp.asarray(UP)])
def test_whole_numbers_of_every_kind_are_actions(action):
    env = GuardedMazeEnv()
    env.reset()
    assert env.step(action)[0] == 24


def test_stepping_outside_an_episode_needs_a_reset():
    env = GuardedMazeEnv(horizon=1)
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(UP)
    play(env, [UP])
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(UP)


def test_the_horizon_truncates():
    steps = play(gym.make(ID), [LEFT] * 100)
    assert [truncated for _, _, _, truncated, _ in steps] == [False] * 99 + [True]
    assert not any(terminated for _, _, terminated, _, _ in steps)


def test_the_goal_on_the_last_step_ends_the_episode_and_does_not_truncate_it():
    _, _, terminated, truncated, _ = play(GuardedMazeEnv(horizon=11), WHITE_PATH)[-1]
    assert terminated is True
    assert truncated is False


# The rules


@pytest.mark.parametrize("layout", [PAPER_LAYOUT, TWO_WHITE_PATHS, NO_WHITE_PATH])
def test_the_mdp_follows_the_rules(layout):
    maze = Maze(layout=layout, red_probabilities=RED_PROBABILITIES)
    pays = {"G": {20: 1}, "R": RED_DRAWS}
    for cell in np.flatnonzero(maze.live):
        for action in range(4):
            there, into = outcome_by_hand(layout, int(cell), action)
            expected = {(there, reward, into == "G"): p for reward, p in pays.get(into, {-1: 1}).items()}
            assert distinct(maze, cell, action) == expected
            assert maze.enters_red[cell, action] == (into == "R" and there != cell)


@pytest.mark.parametrize("layout", [PAPER_LAYOUT, TWO_WHITE_PATHS, NO_WHITE_PATH])
def test_the_environment_steps_as_the_mdp_does(layout):
    env = GuardedMazeEnv(layout=layout)
    for cell in np.flatnonzero(env.maze.live):
        way = actions_to(env.maze, cell)
        for action in range(4):
            there, reward, terminated, truncated, _ = play(env, [*way, action])[-1]
            assert (int(there), reward, terminated) in distinct(env.maze, cell, action)
            assert truncated is False


def test_red_pays_each_reward_as_often_as_it_should():
    n = 4000
    env = GuardedMazeEnv(red_probabilities=RED_PROBABILITIES, horizon=10 * n)
    steps = play(env, [RIGHT] * 3 + [RIGHT, LEFT] * n, seed=1)
    draws = np.array([reward for there, reward, *_ in steps if there == RED])
    assert len(draws) == n
    for reward, p in RED_DRAWS.items():
        assert abs(np.mean(draws == reward) - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_walls_and_goals_are_dead_ends_worth_nothing():
    maze = Maze()
    assert np.flatnonzero(~maze.live).tolist() == [7, 8, 9, 10, 11, 16, 22, 28]
    for cell in np.flatnonzero(~maze.live):
        for action in range(4):
            assert distinct(maze, cell, action) == {(cell, 0.0, True): 1.0}
    assert not maze.enters_red[~maze.live].any()


@pytest.mark.parametrize("bump", [UP, DOWN])
@pytest.mark.parametrize(("draw_on_bump", "paid"), [(True, 7.0), (False, -1.0)])
def test_a_bump_on_red_draws_again_unless_that_is_off(bump, draw_on_bump, paid):
    env = GuardedMazeEnv(red_rewards=(7,), red_probabilities=(1,), draw_on_bump=draw_on_bump)
    steps = play(env, [RIGHT] * 4 + [bump] * 3)
    assert [(int(there), reward) for there, reward, *_ in steps[3:]] == [(RED, 7.0)] + [(RED, paid)] * 3


# The paper's numbers


def test_the_white_path_of_the_paper():
    maze = Maze()
    assert maze.white_path == (30, 24, 18, 12, 6, 0, 1, 2, 3, 4, 5, 11)
    assert maze.white_path_length == 11
    assert maze.white_path_is_unique
    assert [int(there) for there, *_ in play(GuardedMazeEnv(), WHITE_PATH)] == list(maze.white_path[1:])


@pytest.mark.parametrize(("goal_reward", "white", "short"), [(20, 9.846, 11.869), (40, 29.647, 31.709)])
def test_discounted_returns_of_the_two_paths(goal_reward, white, short):
    env = GuardedMazeEnv(goal_reward=goal_reward)
    assert discounted([reward for _, reward, *_ in play(env, WHITE_PATH)]) == pytest.approx(white, abs=5e-4)
    assert expected_return(env.maze, SHORT_PATH) == pytest.approx(short, abs=5e-4)
    assert expected_return(env.maze, WHITE_PATH) == pytest.approx(white, abs=5e-4)


def expected_return(maze, actions):
    """The exact expected discounted return of a sequence of moves."""
    cell, rewards = maze.start, []
    for action in actions:
        rewards.append(maze.mdp.probability[cell, action] @ maze.mdp.reward[cell, action])
        cell = maze.mdp.next_state[cell, action, 0]
    return discounted(rewards)


@pytest.mark.parametrize(("goal_reward", "variance"), [(10, 10.0), (20, 36.4)])
def test_per_step_reward_variance_of_the_white_path(goal_reward, variance):
    rewards = [reward for _, reward, *_ in play(GuardedMazeEnv(goal_reward=goal_reward), WHITE_PATH)]
    assert np.var(rewards) == pytest.approx(variance, abs=0.05)


def test_a_random_walk_reaches_the_goal_in_about_a_fifth_of_episodes():
    maze, n = Maze(), 200
    alive, reached = maze.mdp.initial, 0.0
    step = np.zeros((36, 36))
    for cell in range(36):
        np.add.at(step[cell], maze.destination[cell], 1 / 4)
    for _ in range(maze.horizon):
        alive = alive @ step
        reached += alive[~maze.live].sum()
        alive = alive * maze.live
    assert reached == pytest.approx(0.2, abs=0.01)

    env, walk = gym.make(ID), np.random.default_rng(0)
    goals = [play_alone(env, seed, lambda cell, t: walk.integers(4))[1]["goal_rate"] for seed in range(n)]
    assert abs(np.mean(goals) - reached) < 4 * math.sqrt(reached * (1 - reached) / n)


# Episode metrics


@pytest.mark.parametrize(
    ("actions", "goal", "red", "white"),
    [
        (WHITE_PATH, 1, 0, 1),
        (SHORT_PATH, 1, 1, 0),
        ([LEFT, *WHITE_PATH], 1, 0, 0),
        ([LEFT] * 2 + SHORT_PATH, 1, 1, 0),  # 11 moves, but through red
        ([LEFT] * 100, 0, 0, 0),
        ([RIGHT] * 4 + [UP] * 96, 0, 1, 0),
        ([UP] * 11, 0, 0, 0),  # 11 moves, not yet at the goal
    ],
)
def test_metrics_of_episodes(actions, goal, red, white):
    metrics = play(GuardedMazeEnv(), actions)[-1][-1]["episode_metrics"]
    assert metrics == {"goal_rate": goal, "red_visit_rate": red, "white_path_rate": white}
    assert all(type(value) is float for value in metrics.values())


def test_metrics_agree_in_numpy_and_jax_and_the_environment():
    env, walk = GuardedMazeEnv(), np.random.default_rng(0)
    visits, ended, metrics = np.zeros((40, 36 * 4), dtype=np.int32), np.zeros(40, dtype=bool), []
    for episode in range(40):
        # A random walk hardly ever takes the white path, so one episode follows it.
        moves = WHITE_PATH if episode == 0 else walk.integers(4, size=100)
        cell, _ = env.reset(seed=episode)
        for action in moves:
            visits[episode, cell * 4 + action] += 1
            cell, _, ended[episode], truncated, info = env.step(action)
            if ended[episode] or truncated:
                break
        metrics.append(info["episode_metrics"])
    on_numpy = env.maze.metrics(visits, ended)
    on_jax = jax.jit(env.maze.metrics)(jnp.asarray(visits), jnp.asarray(ended))
    for name in ("goal_rate", "red_visit_rate", "white_path_rate"):
        expected = [one[name] for one in metrics]
        assert 0 < sum(expected) < 40
        np.testing.assert_array_equal(on_numpy[name], expected)
        np.testing.assert_array_equal(on_jax[name], expected)
        assert on_jax[name].dtype == jnp.float32
        assert on_numpy[name].shape == on_jax[name].shape == (40,)


def test_metrics_under_strict_promotion_with_float_counts_and_more_axes():
    maze = Maze()
    visits = np.zeros((2, 3, 36 * 4), dtype=np.float32)
    for cell, action in zip(maze.white_path[:-1], WHITE_PATH, strict=True):
        visits[1, 2, cell * 4 + action] = 1
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        metrics = jax.jit(maze.metrics)(visits, visits.sum(-1) > 0)
    assert {name: (value.shape, float(value.sum())) for name, value in metrics.items()} == {
        "goal_rate": ((2, 3), 1),
        "red_visit_rate": ((2, 3), 0),
        "white_path_rate": ((2, 3), 1),
    }


def test_any_of_several_white_paths_counts():
    env = GuardedMazeEnv(layout=TWO_WHITE_PATHS)
    assert env.maze.white_path_length == 2
    assert not env.maze.white_path_is_unique
    for actions in ([UP, RIGHT], [RIGHT, UP]):
        assert play(env, actions)[-1][-1]["episode_metrics"]["white_path_rate"] == 1


def test_shortest_paths_of_an_open_grid_are_counted_by_the_binomial_coefficient():
    maze = Maze(layout="S....\n.....\n.....\n....G")
    found = shortest_paths(maze.destination, maze.start, maze.grid.ravel() == "G", maze.grid.ravel() == "R")
    assert found.number == math.comb(3 + 4, 3)
    assert len(found.path) == 3 + 4 + 1


def test_without_a_white_path_nothing_is_metrics_of_one():
    env = GuardedMazeEnv(layout=NO_WHITE_PATH)
    assert env.maze.white_path is None
    assert env.maze.white_path_length is None
    assert not env.maze.white_path_is_unique
    assert play(env, [RIGHT] * 3)[-1][-1]["episode_metrics"] == {"goal_rate": 1, "red_visit_rate": 1}
