"""The exact frontier: known values in the maze, loops and giving up where they pay, and no policy beyond it."""

import numpy as np
import pytest
from scipy.special import softmax
from trajectories import one_step

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.exact.walks import best_walks, frontier

UP, DOWN, LEFT, RIGHT = range(4)
WHITE, SHORT = (UP,) * 5 + (RIGHT,) * 5 + (DOWN,), (RIGHT,) * 5 + (UP,) * 4


def points(maze, measure="gini_deviation"):
    return [(walk.mean, walk.risk(measure)) for walk in frontier(maze.mdp, measure)]


def along(maze, actions):
    """The table of a policy that takes these actions one after the other."""
    policy, cell = np.full((maze.mdp.n_states, 4), 0.25), maze.start
    for action in actions:
        policy[cell] = np.eye(4)[action]
        cell = maze.destination[cell, action]
    return policy


@pytest.mark.parametrize("goal", [20, 40])
def test_the_maze_has_two_paths(goal):
    maze = Maze(goal_reward=goal)
    walks = frontier(maze.mdp)
    assert [(walk.steps, walk.ends) for walk in walks] == [(11, True), (9, True)]
    for walk, actions in zip(walks, (WHITE, SHORT), strict=True):
        law = exact.return_distribution(maze.mdp, along(maze, actions), gamma=1.0)
        assert walk.mean == pytest.approx(law.mean)
        for measure in ("gini_deviation", "standard_deviation"):
            assert walk.risk(measure) == pytest.approx(getattr(law, measure), abs=1e-9)
        assert walk.risk("cvar_10") == pytest.approx(-law.cvar(0.1))
    np.testing.assert_allclose(points(maze), [(goal - 10, 0), (goal - 8, 6.72)], atol=1e-9)


def test_loops_matter_where_red_cells_pay():
    maze = Maze(layout="S R G", red_rewards=(0.0, 4.0), red_probabilities=(0.5, 0.5), horizon=6, goal_reward=3)
    # Back and forth: at 2, 4 and 6 steps the goal is entered. A bump on the red cell draws again.
    walks = {walk.steps: walk for walk in best_walks(maze.mdp) if walk.ends}
    assert walks[2].mean == 2 + 3
    most = max(walks.values(), key=lambda walk: walk.mean)
    assert (most.steps, most.mean) == (6, 5 * 2 + 3)
    assert frontier(maze.mdp)[-1].mean == 13


def test_giving_up_is_best_where_the_goal_costs_more():
    maze = Maze(goal_reward=-200)
    assert [(walk.steps, walk.ends, walk.mean, walk.risk("gini_deviation")) for walk in frontier(maze.mdp)] == [
        (100, False, -100, 0)
    ]


@pytest.mark.parametrize("measure", ["gini_deviation", "standard_deviation", "cvar_10"])
def test_no_policy_lies_beyond_the_frontier(measure):
    maze = Maze(layout="S . R\n. # .\n. . G", horizon=12)
    vertices = points(maze, measure)
    rng = np.random.default_rng(0)
    policies = softmax(rng.normal(scale=rng.choice([1, 3, 10], size=(60, 1, 1)), size=(60, 9, 4)), axis=-1)
    law = exact.return_distribution(maze.mdp, policies, gamma=1.0)
    risk = -law.cvar(0.1) if measure == "cvar_10" else getattr(law, measure)
    for aversion in (0, 0.1, 0.3, 1, 3):
        best = max(mean - aversion * value for mean, value in vertices)
        assert np.all(law.mean - aversion * risk <= best + 1e-9)


def test_what_does_not_reduce_to_walks_is_refused():
    slippery = FiniteMDP(
        next_state=[[[0, 1]], [[0, 1]]],
        reward=np.zeros((2, 1, 2)),
        ends=np.zeros((2, 1, 2)),
        probability=np.full((2, 1, 2), 0.5),
        initial=[1, 0],
        horizon=3,
    )
    with pytest.raises(ValueError, match="several next states"):
        frontier(slippery)
    with pytest.raises(ValueError, match="it is one of"):
        frontier(Maze().mdp, "range")
    ends = FiniteMDP(
        np.zeros((2, 1, 1)), np.zeros((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)), initial=[0.5, 0.5], horizon=1
    )
    with pytest.raises(ValueError, match="2 states are possible"):
        frontier(ends)


def test_a_single_random_reward():
    (walk,) = frontier(one_step([0, 1], [0.5, 0.5]))
    assert (walk.mean, walk.risk("gini_deviation"), walk.risk("cvar_10")) == (0.5, 0.25, 0)
