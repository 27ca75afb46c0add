"""Layouts and options of the Guarded Maze, right and wrong ones, and how a maze is drawn."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyrl.envs.guarded_maze import PAPER_LAYOUT, GuardedMazeEnv, Maze
from steadyrl.envs.guarded_maze.rendering import AGENT_COLOUR, COLOURS, LINE_COLOUR, TRAIL_COLOUR

ID = "steadyrl/GuardedMaze-v0"
RIGHT = 3


# Layouts


def test_spaces_and_indentation_carry_no_meaning():
    drawn = Maze(layout="\n\n   S . R\n   . # G\n\n")
    assert drawn == Maze(layout="S.R\n.#G") == Maze(layout="S.R\r\n.#G\r\n")
    assert hash(drawn) == hash(Maze(layout="S.R\n.#G"))
    assert Maze().layout == PAPER_LAYOUT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": " \n "}, "is empty"),
        ({"layout": "..G"}, "0 start cells"),
        ({"layout": "S.S.G"}, "2 start cells"),
        ({"layout": "S.."}, "0 goal cells"),
        ({"layout": "S.G\n.."}, "row 1 .* has 2 cells and row 0 has 3"),
        ({"layout": "S.G\n\n..."}, "row 1 .* has 0 cells"),
        ({"layout": "S.G\n.x."}, "row 1, column 1 holds 'x'"),
        ({"layout": "S#G"}, "no way from the start to the goal:\nS # G"),
        ({"red_rewards": (1, 2)}, "red_rewards has 2 values and red_probabilities 3"),
        ({"red_probabilities": (0.4, 0.2, 0.3)}, r"\(sum 0.9\)"),
        ({"red_probabilities": (1.5, -0.5, 0)}, r"\(1.5, -0.5, 0.0\).*non-negative"),
        ({"red_probabilities": (math.nan, 0.5, 0.5)}, "non-negative and sum to 1"),
        ({"red_rewards": (), "red_probabilities": ()}, r"\(sum 0\)"),
        ({"red_rewards": (1, 2, math.inf)}, "red_rewards=.*finite"),
        ({"goal_reward": math.nan}, "goal_reward=nan.*finite"),
        ({"horizon": 0}, "horizon=0"),
        ({"horizon": 10.5}, "horizon=10.5"),
    ],
)
def test_a_maze_that_cannot_be_is_refused_with_its_reason(options, message):
    with pytest.raises(ValueError, match=message):
        Maze(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"layout": layout}, "layout is .*, not text") for layout in (None, 5, ["S.G"], np.array(["S.G"]), b"S.G")),
        *(({"draw_on_bump": x}, "draw_on_bump=.*True or False") for x in (math.nan, [], 1, 0, "false", None)),
        *(({"goal_reward": x}, "goal_reward=.*a number") for x in (None, "20", True, [20], 1j, 10**400, np.ones(2))),
        *(
            ({"red_rewards": x}, "red_rewards=.*number")
            for x in (None, 5, "123", {1: 2}, {1, 2}, [None] * 3, [[1]] * 3)
        ),
        *(({"red_probabilities": x}, "red_probabilities=.*number") for x in (1.0, "1", [True], np.ones((3, 1)))),
        *(({"horizon": x}, "horizon=") for x in (True, None, "100", math.nan, [100], -1)),
    ],
)
def test_options_of_another_type_are_refused(options, message):
    for make in (Maze, partial(gym.make, ID)):
        with pytest.raises(ValueError, match=message) as error:
            make(**options)
        assert "\n" not in str(error.value)


def test_numpys_types_are_the_same_options():
    options = {"goal_reward": np.float32(20), "red_rewards": np.array([-15, -1, 13]), "horizon": np.int64(100)}
    assert Maze(**options, draw_on_bump=np.True_, layout=np.str_(PAPER_LAYOUT)) == Maze()
    assert Maze(draw_on_bump=np.False_) == Maze(draw_on_bump=False)


MAZE_TEXT = st.text("SGR#. \n", max_size=30)
JUNK = st.one_of(st.text(max_size=20), st.binary(max_size=5), st.none(), st.integers(), st.lists(MAZE_TEXT, max_size=3))
GRIDS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.text("GR#....", min_size=width, max_size=width), min_size=1, max_size=4)
)


@given(layout=st.one_of(MAZE_TEXT, JUNK, st.builds(lambda rows: "\n".join(["S" + rows[0][1:], *rows[1:]]), GRIDS)))
def test_any_layout_is_a_maze_or_a_value_error(layout):
    try:
        env = GuardedMazeEnv(layout=layout, horizon=20)
    except ValueError:
        return
    maze = env.maze
    assert Maze(layout=maze.layout, horizon=20) == maze
    assert maze.grid.ravel()[maze.start] == "S"
    env.reset(seed=0)
    walk, over = np.random.default_rng(0), False
    while not over:
        cell, reward, terminated, truncated, _ = env.step(walk.integers(4))
        assert maze.grid.ravel()[cell] != "#"
        assert math.isfinite(reward)
        over = terminated or truncated


# Pictures


def test_drawn_as_text():
    env = gym.make(ID, render_mode="ansi")
    env.reset()
    assert env.render() == PAPER_LAYOUT.replace("S", "A")
    env.step(RIGHT)
    assert env.render() == PAPER_LAYOUT.replace("S .", "S A")


def test_drawn_as_pixels():
    env = gym.make(ID, render_mode="rgb_array", layout="S.R\n.#G")
    env.reset()
    env.step(RIGHT)
    image = env.render()
    assert image.shape == (64, 96, 3)
    assert image.dtype == np.uint8
    near_corners = image[4::32, 4::32]  # clear of lines and of the agent
    assert near_corners.tolist() == [[list(COLOURS[kind]) for kind in row] for row in ("S.R", ".#G")]
    assert image[16, 48].tolist() == list(AGENT_COLOUR)
    assert (image == AGENT_COLOUR).all(axis=-1).sum() == pytest.approx(math.pi * (0.3 * 32) ** 2, rel=0.05)
    trail = (image == TRAIL_COLOUR).all(axis=-1)
    assert trail[:32, :32].sum() == trail.sum() == pytest.approx(math.pi * (0.1 * 32) ** 2, rel=0.2)
    assert (image[::32] == LINE_COLOUR).all()
    assert (image[:, -1] == LINE_COLOUR).all()


def test_not_drawn_unless_asked():
    env = GuardedMazeEnv()
    env.reset()
    assert env.render() is None
    with pytest.raises(ValueError, match=r"render_mode='human'.*'ansi' or 'rgb_array'"):
        GuardedMazeEnv(render_mode="human")
