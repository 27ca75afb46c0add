"""The Guarded Maze as data: its layout, rewards and rules, and what can be said of an episode in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.guarded_maze import layout as drawing
from steadyrl.envs.guarded_maze.paths import ShortestPaths, shortest_paths
from steadyrl.mdp import FiniteMDP

PAPER_LAYOUT = """\
. . . . . .
. # # # # G
. . . . # .
. . . . # .
. . . . # .
S . . . R ."""

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""The actions, in the order of their numbers, as steps in (row, column)."""
STEP_REWARD = -1.0
"""What a step pays, unless it moves into a red cell or the goal."""


@dataclass(frozen=True)
class Maze:
    """A grid with a start, a goal and red cells, where a move costs 1 and a move into red pays a gamble.

    Cells are numbered row * width + column, walls included. A move into a red cell pays a draw from
    `red_rewards`, a move into the goal pays `goal_reward` and ends the episode; either takes the place of the
    -1. Who bumps into a wall or the border stays, and is paid as for a move into the cell they stay in: -1, or on a
    red cell another draw, unless `draw_on_bump` is false (deviation 1 in docs/deviations.md).

    The white path is the shortest way to the goal that enters no red cell. An episode took it if it reached
    the goal in as many moves without entering red; where several paths are as short, any of them counts (deviation 11).
    """

    layout: str = PAPER_LAYOUT
    """The drawing: S start, G goal, R red, # wall, . floor; spaces between cells are optional."""
    goal_reward: float = 20.0
    """What the move into the goal pays."""
    red_rewards: tuple[float, ...] = (-15.0, -1.0, 13.0)
    """What a move into a red cell may pay."""
    red_probabilities: tuple[float, ...] = (0.4, 0.2, 0.4)
    """The probability of each of `red_rewards`."""
    horizon: int = 100
    """The number of steps after which an episode ends wherever it is."""
    draw_on_bump: bool = True
    """Whether bumping into a wall on a red cell pays another draw; if not, it costs 1 as elsewhere."""

    def __post_init__(self) -> None:
        # One form for each maze, so that equal mazes compare equal however they were written.
        object.__setattr__(self, "layout", drawing.write(drawing.read(self.layout)))
        object.__setattr__(self, "goal_reward", float(self.goal_reward))
        object.__setattr__(self, "red_rewards", tuple(map(float, self.red_rewards)))
        object.__setattr__(self, "red_probabilities", tuple(map(float, self.red_probabilities)))
        _check_rewards(self)
        if not isinstance(self.horizon, int | np.integer) or self.horizon < 1:
            raise ValueError(
                f"horizon={self.horizon!r}: an episode has a whole number of steps. Set horizon to 1 or more."
            )
        object.__setattr__(self, "horizon", int(self.horizon))
        # No move enters a wall, so this search avoids nothing.
        if self._shortest_paths(avoid=drawing.WALL) is None:
            raise ValueError(
                f"layout has no way from the start to the goal:\n{self.layout}\n"
                f"No episode could succeed. Open a wall ({drawing.WALL!r}) between them."
            )

    @cached_property
    def grid(self) -> NDArray[np.str_]:
        """[height, width]: the character of each cell."""
        return drawing.read(self.layout)

    @property
    def start(self) -> int:
        """The cell in which every episode begins."""
        return int(np.flatnonzero(self.grid == drawing.START)[0])

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """[S]: the cells in which an episode can be under way, that is, neither walls nor goals."""
        return ~np.isin(self.grid.ravel(), [drawing.WALL, drawing.GOAL])

    @cached_property
    def destination(self) -> NDArray[np.int32]:
        """[S, A]: the cell in which a move ends: the neighbour, or the cell itself where the move bumps."""
        height, width = self.grid.shape
        cells = self.grid.ravel()
        here = np.arange(cells.size)
        destination = np.empty((cells.size, len(MOVES)), dtype=np.int32)
        for action, (down, right) in enumerate(MOVES.values()):
            row, column = here // width + down, here % width + right
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            there = np.where(inside, row * width + column, here)
            destination[:, action] = np.where(self.live & (cells[there] != drawing.WALL), there, here)
        return destination

    @cached_property
    def enters_red(self) -> NDArray[np.bool_]:
        """[S, A]: the pairs whose move goes into a red cell."""
        return self._enters(drawing.RED)

    @cached_property
    def draws_red(self) -> NDArray[np.bool_]:
        """[S, A]: the pairs that pay a draw from `red_rewards`."""
        ends_in_red = (self.grid.ravel() == drawing.RED)[self.destination]
        return ends_in_red if self.draw_on_bump else self.enters_red

    @cached_property
    def mdp(self) -> FiniteMDP:
        """The maze as arrays, with an outcome for each red reward."""
        S, A, K = *self.destination.shape, len(self.red_rewards)
        into_goal = self._enters(drawing.GOAL)
        reward = np.full((S, A, K), STEP_REWARD)
        reward[self.draws_red] = self.red_rewards
        reward[into_goal] = self.goal_reward
        probability = np.zeros((S, A, K))
        probability[..., 0] = 1
        probability[self.draws_red] = self.red_probabilities
        ends = np.repeat(into_goal[..., None], K, axis=2)
        # No live episode is in a wall or a goal; ending there for nothing gives such a state the value 0.
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
        """The cells of a white path from start to goal; None where every way to the goal enters red."""
        return None if self._white_paths is None else self._white_paths.path

    @property
    def white_path_length(self) -> int | None:
        """The number of moves of a white path; None where there is none."""
        return None if self._white_paths is None else len(self._white_paths.path) - 1

    @property
    def white_path_is_unique(self) -> bool:
        """Whether there is exactly one white path."""
        return self._white_paths is not None and self._white_paths.number == 1

    @property
    def facts(self) -> MazeFacts:
        """What can be said of episodes in this maze."""
        return MazeFacts(tuple(np.flatnonzero(self.enters_red).tolist()), self.white_path_length)

    @cached_property
    def _white_paths(self) -> ShortestPaths | None:
        return self._shortest_paths(avoid=drawing.RED)

    def _shortest_paths(self, avoid: str) -> ShortestPaths | None:
        cells = self.grid.ravel()
        return shortest_paths(self.destination, self.start, cells == drawing.GOAL, cells == avoid)

    def _enters(self, kind: str) -> NDArray[np.bool_]:
        moves = self.destination != np.arange(self.grid.size)[:, None]
        of_kind = self.grid.ravel() == kind
        return np.asarray(moves & of_kind[self.destination])


@dataclass(frozen=True)
class MazeFacts:
    """What can be said of episodes, each as 0 or 1, so that a mean over episodes is a rate.

    Calling it with `visits` [..., S * A], how often an episode took each pair (index state * A + action), and `ended`
    [...] of bool, whether the goal was reached, gives name -> [...]:

    - `goal_rate`: the goal was reached;
    - `red_visit_rate`: a red cell was entered at least once;
    - `white_path_rate`: the white path was taken (left out where the maze has none).

    Works on NumPy and JAX arrays, under `jit` too. Equal for mazes that differ in their rewards alone, so that they
    share a compiled program.
    """

    red_pairs: tuple[int, ...]
    white_path_length: int | None

    def __call__(self, visits: Any, ended: Any) -> dict[str, Any]:
        """The facts of each episode."""
        saw_red = visits[..., np.array(self.red_pairs, dtype=int)].sum(-1) > 0
        truths = self.truths(saw_red, visits.sum(-1), ended)
        return {name: truth.astype(float) for name, truth in truths.items()}

    def truths(self, saw_red: Any, steps: Any, ended: Any) -> dict[str, Any]:
        """The same as true or false, from whether red was entered, the number of steps, and whether the goal was."""
        stated = {"goal_rate": ended, "red_visit_rate": saw_red}
        if self.white_path_length is not None:
            # ended > saw_red: the goal was reached and red was not entered, for Python's bools and for arrays.
            stated["white_path_rate"] = (ended > saw_red) & (steps == self.white_path_length)
        return stated


def _check_rewards(maze: Maze) -> None:
    rewards, probabilities = maze.red_rewards, maze.red_probabilities
    if len(rewards) != len(probabilities):
        raise ValueError(
            f"red_rewards has {len(rewards)} values and red_probabilities {len(probabilities)}: "
            "each reward needs its probability. Give both the same length."
        )
    if not all(p >= 0 for p in probabilities) or abs(sum(probabilities) - 1) > 1e-9:
        raise ValueError(
            f"red_probabilities={probabilities} (sum {sum(probabilities):g}): probabilities are "
            "non-negative and sum to 1. Rescale them."
        )
    for name, values in (("goal_reward", (maze.goal_reward,)), ("red_rewards", rewards)):
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name}={getattr(maze, name)}: returns need finite rewards. Replace NaN and infinity.")
