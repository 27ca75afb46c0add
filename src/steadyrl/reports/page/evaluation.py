"""Evaluation episodes of trained agents: returns, episode metrics, and visits to the cells of a maze."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import load
from steadyrl.agents.agent import Agent
from steadyrl.base.seeding import EvaluationStream, evaluation_stream_seed
from steadyrl.envs.finite import finite_model
from steadyrl.envs.guarded_maze import Maze
from steadyrl.evaluation.play import Played, play_policy
from steadyrl.evaluation.risk_report import Estimate
from steadyrl.evaluation.seed_bootstrap import risk_of_seeds
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.runs_found import FoundRun, Notes
from steadyrl.reports.records import LARGEST
from steadyrl.reports.run_state import COMPLETE
from steadyrl.rollouts.episodes import Episodes
from steadyrl.runs.final_evaluation import store_evaluation, stored_evaluation

Array = NDArray[np.float64]

MARKED = ("mean", "gini_deviation", "cvar_10")
"""The measures of `reported.REPORTED` that are marked in a distribution plot."""
_MAZE = "steadyrl/GuardedMaze-v0"


@dataclass(frozen=True)
class AgentEpisodes:
    """n evaluation episodes of one trained agent."""

    returns: Array
    """[n]: the undiscounted returns."""
    episode_metrics: dict[str, Array]
    """name -> [n]."""
    maze: Maze | None = field(repr=False, default=None)
    visits: Array | None = field(repr=False, default=None)
    """[height, width]: the mean number of visits per episode to each cell; None if the environment is not a maze."""


def evaluate_agent(run: FoundRun, episodes: int, notes: Notes, envs: NamedEnvs) -> AgentEpisodes | None:
    """The evaluation episodes of the agent of a run, in its training environment and with its own seed.

    Those that are stored in the run folder are taken, if there are at least so many of them; others are played, and
    stored if the run is complete. Mazes are played anyway, for their maps.

    Returns None, and adds the reason to `notes`, if there are none and the agent or its environment cannot be loaded.
    """
    if not run.checkpoint.is_file():
        notes["no checkpoint: not in the return distributions"].append(run.name)
        return None
    stored = _stored(run, notes)
    if stored is not None and len(stored.returns) >= episodes and run.env_id not in (_MAZE, *envs.named):
        return stored
    own_notes = Notes(list)
    played = _play_run(run, episodes, own_notes, envs)
    if stored is not None and (played is None or len(stored.returns) >= episodes):
        return AgentEpisodes(stored.returns, stored.episode_metrics, *((played.maze, played.visits) if played else ()))
    for reason, names in own_notes.items():
        notes[reason] += names
    return played


def _stored(run: FoundRun, notes: Notes) -> AgentEpisodes | None:
    try:
        found = stored_evaluation(run.folder)
    except (ValueError, OSError) as error:
        reason = _one_line(str(error).removeprefix(f"{run.folder}").lstrip("/\\"))
        notes[f"{reason.rstrip('.')}: its episodes are played again"].append(run.name)
        return None
    if found is None or not _are_shown(found.returns):
        return None
    return AgentEpisodes(found.returns, found.episode_metrics)


def _play_run(run: FoundRun, episodes: int, notes: Notes, envs: NamedEnvs) -> AgentEpisodes | None:
    try:
        env = envs.create(run)
    except (ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        notes[f"{_one_line(error)} Not in the return distributions"].append(run.name)
        return None
    try:
        return _load_and_play(run, env, episodes, notes, envs)
    finally:
        if env is not None:
            env.close()


def _load_and_play(
    run: FoundRun, env: gym.Env[Any, Any] | None, episodes: int, notes: Notes, envs: NamedEnvs
) -> AgentEpisodes | None:
    """In `env`, or else in the environment that the checkpoint records."""
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
        played, maze, visits = play(agent, run.seed, episodes)
    except Exception as error:  # Of an environment that anybody may have written.
        reason = _one_line(f"{type(error).__name__}: {error}")
        notes[f"its environment failed ({reason}): not in the return distributions"].append(run.name)
        return None
    if not _are_shown(played.returns):
        notes["returns that are not finite: not in the return distributions"].append(run.name)
        return None
    if run.state.name == COMPLETE:
        with suppress(OSError):  # A folder that cannot be written to: they are played again the next time.
            store_evaluation(run.folder, played, agent.gamma, run.seed)
    metrics = {name: np.asarray(values, np.float64) for name, values in played.metrics.items()}
    return AgentEpisodes(played.returns, metrics, maze, visits)


def play(agent: Agent, seed: int, episodes: int) -> tuple[Played, Maze | None, Array | None]:
    """The episodes of `steadyrl.evaluate` with this seed; in a maze also the visits to its cells in them."""
    assert agent.env is not None
    model = finite_model(agent.env)
    if isinstance(model, Maze):
        policy_seed = evaluation_stream_seed(seed, EvaluationStream.POLICY)
        rollout = agent.play_compiled(agent.env, episodes, policy_seed, False, 0)
        if rollout is not None:
            rewards = np.asarray(rollout.rewards, dtype=np.float64)
            return Played.of(rewards, agent.gamma, rollout.episode_metrics), model, visits_of(model, rollout)
    played = play_policy(agent, agent.env, episodes, seed, False, agent.gamma)
    if isinstance(model, Maze):
        return played, model, visits_of(model, agent.play(episodes, seed))
    return played, None, None


def _are_shown(returns: Array) -> bool:
    return len(returns) > 1 and bool(np.all(np.abs(returns) <= LARGEST))


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
