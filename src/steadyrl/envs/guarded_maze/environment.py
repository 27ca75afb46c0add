"""The Guarded Maze as a Gymnasium environment."""

from __future__ import annotations

import operator
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.guarded_maze.definition import MOVES, Maze
from steadyrl.envs.guarded_maze.rendering import as_pixels, as_text


class GuardedMazeEnv(gym.Env[np.int64, Any]):
    """A walk through a `Maze`, seen as the number of the cell; the actions are 0 up, 1 down, 2 left, 3 right.

    The time limit is the maze's own `horizon` and is reported as a truncation. `info["facts"]` says of the
    episode so far whether it reached the goal, entered red and took the white path; see `MazeFacts`.

    Args:
        render_mode: "ansi" for text, "rgb_array" for an image, None for neither.
        **options: the fields of `Maze`, which are `layout`, `goal_reward`, `red_rewards`,
            `red_probabilities`, `horizon` and `draw_on_bump`.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode={render_mode!r}: the maze draws itself as 'ansi' or 'rgb_array'.")
        self.render_mode = render_mode
        self.maze = Maze(**options)
        mdp = self.maze.mdp
        self.observation_space = gym.spaces.Discrete(mdp.n_states)
        self.action_space = gym.spaces.Discrete(mdp.n_actions)
        self._facts = self.maze.facts
        self._cell = self.maze.start
        self._outcome_thresholds = mdp.probability.cumsum(axis=-1)[..., :-1]
        self._steps, self._saw_red, self._over = 0, False, True

    @property
    def finite_face(self) -> Maze | None:
        """The maze itself, which can be played compiled; None for a subclass that steps or resets in its own way."""
        own = type(self)
        same = own.step is GuardedMazeEnv.step and own.reset is GuardedMazeEnv.reset
        return self.maze if same else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Back to the start; `options` are not used."""
        super().reset(seed=seed)
        self._cell = self.maze.start
        self._steps, self._saw_red, self._over = 0, False, False
        return np.int64(self._cell), self._info(reached_goal=False)

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """One move, drawn from the outcomes of the maze's `mdp`."""
        if self._over:
            raise gym.error.ResetNeeded(
                "no episode is under way: call reset() before the first step and after the last."
            )
        mdp, pair = self.maze.mdp, (self._cell, _checked(action))
        k = int(np.searchsorted(self._outcome_thresholds[pair], self.np_random.random(), side="right"))
        outcome = (*pair, k)
        self._steps += 1
        self._saw_red |= bool(self.maze.enters_red[pair])
        self._cell = int(mdp.next_state[outcome])
        terminated = bool(mdp.ends[outcome])
        truncated = not terminated and self._steps >= mdp.horizon
        self._over = terminated or truncated
        observation, reward = np.int64(self._cell), float(mdp.reward[outcome])
        return observation, reward, terminated, truncated, self._info(terminated)

    def render(self) -> str | NDArray[np.uint8] | None:
        """The maze and the agent, as `render_mode` says."""
        if self.render_mode is None:
            return None
        draw = as_text if self.render_mode == "ansi" else as_pixels
        return draw(self.maze, self._cell)

    def _info(self, reached_goal: bool) -> dict[str, Any]:
        truths = self._facts.truths(self._saw_red, self._steps, reached_goal)
        return {"facts": {name: float(truth) for name, truth in truths.items()}}


def _checked(action: Any) -> int:
    try:
        number = operator.index(action)  # Takes JAX's whole numbers as well as NumPy's, and no fraction.
    except TypeError:
        number = -1
    if not 0 <= number < len(MOVES):
        names = ", ".join(f"{number} {name}" for number, name in enumerate(MOVES))
        raise ValueError(f"action {action!r} is not a move in the maze. Choose one of: {names}.")
    return number
