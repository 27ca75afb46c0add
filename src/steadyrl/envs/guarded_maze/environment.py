"""The Guarded Maze as a Gymnasium environment."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.episode_metrics import metrics_info
from steadyrl.envs.guarded_maze.definition import MOVES, Maze
from steadyrl.envs.guarded_maze.rendering import as_pixels, as_text
from steadyrl.envs.reward_noise import noise_info


class GuardedMazeEnv(gym.Env[np.int64, Any]):
    """The Guarded Maze. Observations are cell numbers; actions are 0 up, 1 down, 2 left, 3 right.

    An episode is truncated after `horizon` steps. `info["episode_metrics"]` reports whether the episode so far has
    reached the goal, entered a red cell and taken the white path; see `MazeMetrics`. `info["reward_noise"]` reports by
    how much the reward of a red cell differs from its mean.

    Args:
        render_mode: "ansi" for text, "rgb_array" for an image, None for no rendering.
        **options: The fields of `Maze`: `layout`, `goal_reward`, `red_rewards`, `red_probabilities`, `horizon` and
            `draw_on_bump`.
    """

    replays_outcomes = True
    """That `reset` takes `options={"outcomes": ...}`."""
    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012 (as in gym.Env)

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode={render_mode!r} is not supported: use None, 'ansi' or 'rgb_array'.")
        self.render_mode = render_mode
        self.maze = Maze(**options)
        mdp = self.maze.mdp
        self.observation_space = gym.spaces.Discrete(mdp.n_states)
        self.action_space = gym.spaces.Discrete(mdp.n_actions)
        self._metrics = self.maze.metrics
        self._cell = self.maze.start
        self._mean_red_reward = float(np.dot(self.maze.red_rewards, self.maze.red_probabilities))
        self._outcome_thresholds = mdp.probability.cumsum(axis=-1)[..., :-1]
        self._steps, self._visited_red, self._needs_reset = 0, False, True
        self._outcomes: Sequence[int] | None = None
        self._visited: set[int] = set()

    @property
    def finite_model(self) -> Maze | None:
        """The maze, for compiled training; None for a subclass that overrides `step` or `reset`."""
        cls = type(self)
        unchanged = cls.step is GuardedMazeEnv.step and cls.reset is GuardedMazeEnv.reset
        return self.maze if unchanged else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start a new episode.

        `options={"outcomes": [k, ...]}` replays one: step t has outcome k of the maze's `mdp` instead of a random one.
        """
        super().reset(seed=seed)
        self._outcomes = (options or {}).get("outcomes")
        self._cell = self.maze.start
        self._visited = {self._cell}
        self._steps, self._visited_red, self._needs_reset = 0, False, False
        return np.int64(self._cell), self._info(reached_goal=False)

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take one step, with the outcome drawn from the maze's `mdp`."""
        if self._needs_reset:
            raise gym.error.ResetNeeded("no active episode: call reset() before the first step and after the last.")
        mdp, pair = self.maze.mdp, (self._cell, _validate_action(action))
        outcome = (*pair, self._draw(pair))
        self._steps += 1
        self._visited_red |= bool(self.maze.enters_red[pair])
        self._cell = int(mdp.next_state[outcome])
        self._visited.add(self._cell)
        terminated = bool(mdp.ends[outcome])
        truncated = not terminated and self._steps >= mdp.horizon
        self._needs_reset = terminated or truncated
        observation, reward = np.int64(self._cell), float(mdp.reward[outcome])
        noise = reward - self._mean_red_reward if self.maze.draws_red[pair] else None
        return observation, reward, terminated, truncated, {**self._info(terminated), **noise_info(noise)}

    def _draw(self, pair: tuple[int, int]) -> int:
        """The outcome of this step."""
        if self._outcomes is not None:
            return int(self._outcomes[self._steps])
        return int(np.searchsorted(self._outcome_thresholds[pair], self.np_random.random(), side="right"))

    def render(self) -> str | NDArray[np.uint8] | None:
        """Render the maze and the agent according to `render_mode`."""
        if self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return as_text(self.maze, self._cell)
        return as_pixels(self.maze, self._cell, self._visited)

    def _info(self, reached_goal: bool) -> dict[str, Any]:
        flags = self._metrics.flags(self._visited_red, self._steps, reached_goal)
        return metrics_info({name: float(flag) for name, flag in flags.items()})


def _validate_action(action: Any) -> int:
    try:
        number = operator.index(action)  # Accepts integer scalars of NumPy and JAX, rejects floats.
    except TypeError:
        number = -1
    if not 0 <= number < len(MOVES):
        names = ", ".join(f"{number} {name}" for number, name in enumerate(MOVES))
        raise ValueError(f"action {action!r} is not a move in the maze. Choose one of: {names}.")
    return number
