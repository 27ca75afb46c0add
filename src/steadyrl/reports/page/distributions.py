"""Evaluation episodes of trained agents: returns, episode metrics, and visits to the cells of a maze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import load
from steadyrl.envs.finite import finite_model
from steadyrl.envs.guarded_maze import Maze
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.evaluation.seed_bootstrap import risk_of_seeds
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.runs_found import FoundRun, Notes
from steadyrl.reports.records import LARGEST
from steadyrl.rollouts.episodes import Episodes

Array = NDArray[np.float64]

MARKED = ("mean", "gini_deviation", "cvar_10")
"""The measures of `reported.REPORTED` that are marked in a distribution plot."""


@dataclass(frozen=True)
class AgentEpisodes:
    """n evaluation episodes of one trained agent."""

    returns: Array
    """[n]: the undiscounted returns."""
    episode_metrics: dict[str, Array]
    """name -> [n]."""
    maze: Maze | None = field(repr=False)
    visits: Array | None = field(repr=False)
    """[height, width]: the mean number of visits per episode to each cell; None if the environment is not a maze."""


def evaluate_agent(run: FoundRun, episodes: int, notes: Notes, envs: NamedEnvs) -> AgentEpisodes | None:
    """Evaluate the agent of a run in its training environment, with its own seed.

    Returns None, and adds the reason to `notes`, if the agent or its environment cannot be loaded.
    """
    if not run.checkpoint.is_file():
        notes["no checkpoint: not in the return distributions"].append(run.name)
        return None
    try:
        env = envs.create(run)
    except (ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        notes[f"{_one_line(error)} Not in the return distributions"].append(run.name)
        return None
    try:
        return _evaluate(run, env, episodes, notes, envs)
    finally:
        if env is not None:
            env.close()


def _evaluate(
    run: FoundRun, env: gym.Env[Any, Any] | None, episodes: int, notes: Notes, envs: NamedEnvs
) -> AgentEpisodes | None:
    """The same, in `env` or else in the environment that the checkpoint records."""
    try:
        agent = load(run.checkpoint, env)
    except (ValueError, OSError, ImportError) as error:
        reason = _one_line(str(error).removeprefix(str(run.checkpoint)).strip(": "))
        notes[f"checkpoint: {reason} Not in the return distributions"].append(run.name)
        return None
    if agent.env is None:
        notes[envs.reason(run)].append(run.name)
        return None
    if agent.risk_aversion_range is not None:
        notes["it was trained for a range of risk_aversion: not in the return distributions"].append(run.name)
        return None
    try:
        rollout = agent.play(episodes, agent.seed)
    except Exception as error:  # Of an environment that anybody may have written.
        reason = _one_line(f"{type(error).__name__}: {error}")
        notes[f"its environment failed ({reason}): not in the return distributions"].append(run.name)
        return None
    returns = np.asarray(rollout.rewards, np.float64).sum(axis=1)
    if not np.all(np.abs(returns) <= LARGEST):
        notes["returns that are not finite: not in the return distributions"].append(run.name)
        return None
    maze = finite_model(agent.env)
    maze = maze if isinstance(maze, Maze) else None
    return AgentEpisodes(
        returns=returns,
        episode_metrics={name: np.asarray(values, np.float64) for name, values in rollout.episode_metrics.items()},
        maze=maze,
        visits=visits_of(maze, rollout) if maze else None,
    )


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def visits_of(maze: Maze, episodes: Episodes) -> Array:
    """[height, width]: the mean number of visits per episode to each cell, including the final cell."""
    visits = np.zeros(maze.grid.size)
    cells, mask = np.asarray(episodes.observations), np.asarray(episodes.mask) > 0
    np.add.at(visits, cells[mask], 1.0)
    np.add.at(visits, np.asarray(episodes.last_observations), 1.0)
    return visits.reshape(maze.grid.shape) / len(cells)


def marks_of(returns: Sequence[Array]) -> dict[str, Estimate]:
    """The measures in `MARKED` of the episodes of all seeds pooled, with confidence intervals; see `risk_of_seeds`."""
    return risk_of_seeds(returns, MARKED)
