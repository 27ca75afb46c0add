"""The Guarded Maze as data: its layout, rewards and rules, and its episode metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.shown import shown
from steadyrl.envs.guarded_maze.layout import GOAL, RED, START, WALL, format_layout, parse_layout
from steadyrl.envs.guarded_maze.options import as_bool, as_number, as_numbers
from steadyrl.envs.guarded_maze.paths import ShortestPaths, shortest_paths
from steadyrl.exact.mdp import FiniteMDP

PAPER_LAYOUT = """\
. . . . . .
. # # # # G
. . . . # .
. . . . # .
. . . . # .
S . . . R ."""

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""The actions in order, as steps in (row, column)."""
STEP_REWARD = -1.0
"""The reward of a step that enters neither a red cell nor the goal."""


MAX_HORIZON = 100_000
"""All steps of a batch of episodes are in memory at once."""


@dataclass(frozen=True)
class Maze:
    """A grid world with a start, a goal and red cells; a step has reward -1, and entering a red cell a random reward.

    States are cells, numbered row * width + column, walls included. Entering a red cell gives a reward drawn from
    `red_rewards`, and entering the goal gives `goal_reward` and ends the episode; both replace the -1. An agent that
    bumps into a wall or the border stays in its cell and gets the reward of entering that cell: -1, or on a red cell
    another random draw, unless `draw_on_bump` is false (deviation 1 in docs/deviations.md).

    The white path is the shortest path to the goal that enters no red cell. An episode takes it if it reaches the goal
    in that many steps without entering a red cell; if several paths are equally short, any of them counts
    (deviation 11).
    """

    layout: str = PAPER_LAYOUT
    """The maze as text: S start, G goal, R red, # wall, . floor; spaces between cells are optional."""
    goal_reward: float = 20.0
    """The reward for entering the goal."""
    red_rewards: tuple[float, ...] = (-15.0, -1.0, 13.0)
    """The possible rewards for entering a red cell."""
    red_probabilities: tuple[float, ...] = (0.4, 0.2, 0.4)
    """The probability of each of `red_rewards`."""
    horizon: int = 100
    """The maximum number of steps in an episode."""
    draw_on_bump: bool = True
    """Whether bumping into a wall on a red cell draws another red reward; if not, the reward is -1 as elsewhere."""

    def __post_init__(self) -> None:
        # A canonical form, so that equal mazes compare equal however they were specified.
        object.__setattr__(self, "layout", format_layout(parse_layout(self.layout)))
        object.__setattr__(self, "goal_reward", as_number("goal_reward", self.goal_reward))
        object.__setattr__(self, "red_rewards", as_numbers("red_rewards", self.red_rewards))
        object.__setattr__(self, "red_probabilities", as_numbers("red_probabilities", self.red_probabilities))
        object.__setattr__(self, "draw_on_bump", as_bool("draw_on_bump", self.draw_on_bump))
        _check_rewards(self)
        given: Any = self.horizon
        if isinstance(given, float) and given.is_integer():  # As the command line reads 1e3.
            object.__setattr__(self, "horizon", int(given))
        whole = isinstance(self.horizon, int | np.integer) and not isinstance(self.horizon, bool)
        if not whole or not 1 <= self.horizon <= MAX_HORIZON:
            raise ValueError(
                f"horizon={shown(self.horizon)}: an episode has an integer number of steps. "
                f"Set horizon to 1 or more, at most {MAX_HORIZON:,}."
            )
        object.__setattr__(self, "horizon", int(self.horizon))
        # No move enters a wall anyway, so this search excludes nothing.
        if self._shortest_paths(avoid=WALL) is None:
            raise ValueError(
                f"layout has no way from the start to the goal:\n{self.layout}\n"
                f"The goal cannot be reached. Remove a wall ({WALL!r}) between them."
            )

    @cached_property
    def grid(self) -> NDArray[np.str_]:
        """[height, width]: the character of each cell."""
        return parse_layout(self.layout)

    @property
    def start(self) -> int:
        """The start cell."""
        return int(np.flatnonzero(self.grid == START)[0])

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """[S]: the non-terminal cells, that is, neither walls nor goals."""
        return ~np.isin(self.grid.ravel(), [WALL, GOAL])

    @cached_property
    def destination(self) -> NDArray[np.int32]:
        """[S, A]: the next cell: the neighbour, or the same cell if the move bumps into a wall or the border."""
        height, width = self.grid.shape
        cells = self.grid.ravel()
        current = np.arange(cells.size)
        destination = np.empty((cells.size, len(MOVES)), dtype=np.int32)
        for action, (down, right) in enumerate(MOVES.values()):
            row, column = current // width + down, current % width + right
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            target = np.where(inside, row * width + column, current)
            destination[:, action] = np.where(self.live & (cells[target] != WALL), target, current)
        return destination

    @cached_property
    def enters_red(self) -> NDArray[np.bool_]:
        """[S, A]: the state-action pairs that move into a red cell."""
        return self._enters(RED)

    @cached_property
    def draws_red(self) -> NDArray[np.bool_]:
        """[S, A]: the state-action pairs whose reward is drawn from `red_rewards`."""
        ends_in_red = (self.grid.ravel() == RED)[self.destination]
        return ends_in_red if self.draw_on_bump else self.enters_red

    @cached_property
    def mdp(self) -> FiniteMDP:
        """The maze as a finite MDP, with one outcome per red reward."""
        S, A, K = *self.destination.shape, len(self.red_rewards)
        into_goal = self._enters(GOAL)
        reward = np.full((S, A, K), STEP_REWARD)
        reward[self.draws_red] = self.red_rewards
        reward[into_goal] = self.goal_reward
        probability = np.zeros((S, A, K))
        probability[..., 0] = 1
        probability[self.draws_red] = self.red_probabilities
        ends = np.repeat(into_goal[..., None], K, axis=2)
        # Walls and goals are never a current state; ending there with reward 0 gives them the value 0.
        reward[~self.live], ends[~self.live] = 0, True
        return FiniteMDP(
            next_state=np.repeat(self.destination[..., None], K, axis=2),
            reward=reward,
            ends=ends,
            probability=probability,
            initial=np.eye(S)[self.start],
            horizon=self.horizon,
        )

    @property
    def white_path(self) -> tuple[int, ...] | None:
        """The cells of a white path from start to goal; None if every path to the goal enters a red cell."""
        return None if self._white_paths is None else self._white_paths.path

    @property
    def white_path_length(self) -> int | None:
        """The number of steps of a white path; None if there is none."""
        return None if self._white_paths is None else len(self._white_paths.path) - 1

    @property
    def white_path_is_unique(self) -> bool:
        """Whether there is exactly one white path."""
        return self._white_paths is not None and self._white_paths.number == 1

    @property
    def metrics(self) -> MazeMetrics:
        """The episode metrics of this maze."""
        return MazeMetrics(tuple(np.flatnonzero(self.enters_red).tolist()), self.white_path_length)

    @cached_property
    def _white_paths(self) -> ShortestPaths | None:
        return self._shortest_paths(avoid=RED)

    def _shortest_paths(self, avoid: str) -> ShortestPaths | None:
        cells = self.grid.ravel()
        return shortest_paths(self.destination, self.start, cells == GOAL, cells == avoid)

    def _enters(self, kind: str) -> NDArray[np.bool_]:
        moves = self.destination != np.arange(self.grid.size)[:, None]
        of_kind = self.grid.ravel() == kind
        return np.asarray(moves & of_kind[self.destination])


@dataclass(frozen=True)
class MazeMetrics:
    """Episode metrics, each 0 or 1, so that the mean over episodes is a rate.

    Call it with `visits` [..., S * A], the number of times an episode took each state-action pair (index state * A +
    action), and `ended` [...] bool, whether it reached the goal. The result is name -> [...]:

    - `goal_rate`: the goal was reached;
    - `red_visit_rate`: a red cell was entered at least once;
    - `white_path_rate`: the white path was taken (omitted if the maze has none).

    Works on NumPy and JAX arrays and under `jit`. Mazes that differ only in their rewards have equal metrics, so that
    they share a compiled program.
    """

    red_pairs: tuple[int, ...]
    white_path_length: int | None

    def __call__(self, visits: Any, ended: Any) -> dict[str, Any]:
        """The metrics of each episode, as floats."""
        visited_red = visits[..., np.array(self.red_pairs, dtype=int)].sum(-1) > 0
        flags = self.flags(visited_red, visits.sum(-1), ended)
        return {name: flag.astype(float) for name, flag in flags.items()}

    def flags(self, visited_red: Any, steps: Any, ended: Any) -> dict[str, Any]:
        """The metrics as booleans: scalars or arrays, like the arguments."""
        flags = {"goal_rate": ended, "red_visit_rate": visited_red}
        if self.white_path_length is not None:
            # ended > visited_red is `ended and not visited_red`, for Python bools and for arrays.
            flags["white_path_rate"] = (ended > visited_red) & (steps == self.white_path_length)
        return flags


def _check_rewards(maze: Maze) -> None:
    rewards, probabilities = maze.red_rewards, maze.red_probabilities
    if len(rewards) != len(probabilities):
        raise ValueError(
            f"red_rewards has {len(rewards)} values and red_probabilities {len(probabilities)}: "
            "each reward needs a probability. Give both the same length."
        )
    if not all(p >= 0 for p in probabilities) or abs(sum(probabilities) - 1) > 1e-9:
        raise ValueError(
            f"red_probabilities={probabilities} (sum {sum(probabilities):g}): probabilities must be "
            "non-negative and sum to 1. Rescale them."
        )
    for name, values in (("goal_reward", (maze.goal_reward,)), ("red_rewards", rewards)):
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name}={getattr(maze, name)}: rewards must be finite. Replace NaN and infinity.")
