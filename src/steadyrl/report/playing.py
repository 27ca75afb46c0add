"""Fresh episodes of trained agents: their returns, what the environment says of them, and where they went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steadyrl import checkpoint
from steadyrl.envs.guarded_maze import Maze
from steadyrl.episodes import Episodes
from steadyrl.report.runs_found import FoundRun, Notes
from steadyrl.risk_report import CONFIDENCE, MEASURES, Estimate, measure_risk
from steadyrl.rollout import finite_face

Array = NDArray[np.float64]

MARKED = ("mean", "gini_deviation", "cvar_10")
"""What is marked in a distribution, of `risk_report.MEASURES`."""
RESAMPLES = 1000


@dataclass(frozen=True)
class Play:
    """What one trained agent did in n episodes."""

    returns: Array
    """[n]: undiscounted."""
    facts: dict[str, Array]
    """name -> [n]."""
    maze: Maze | None = field(repr=False)
    visits: Array | None = field(repr=False)
    """[height, width]: how often an episode was in each cell on average; None outside mazes."""


def play(run: FoundRun, episodes: int, notes: Notes) -> Play | None:
    """N episodes of the run's agent, from its own seed, in the environment it learned in; None where it cannot be."""
    if not run.checkpoint.is_file():
        notes["no checkpoint: not in the return distributions"].append(run.name)
        return None
    try:
        agent = checkpoint.read(run.checkpoint)
    except (ValueError, OSError, ImportError) as error:
        reason = str(error).removeprefix(str(run.checkpoint)).strip(": ")
        notes[f"checkpoint: {reason} Not in the return distributions"].append(run.name)
        return None
    if agent.env is None:
        notes["its environment cannot be made again here: not in the return distributions"].append(run.name)
        return None
    played = agent.play(episodes, agent.seed)
    maze = finite_face(agent.env)
    maze = maze if isinstance(maze, Maze) else None
    return Play(
        returns=np.asarray(played.rewards, np.float64).sum(axis=1),
        facts={name: np.asarray(values, np.float64) for name, values in played.facts.items()},
        maze=maze,
        visits=visits_of(maze, played) if maze else None,
    )


def visits_of(maze: Maze, episodes: Episodes) -> Array:
    """[height, width]: the mean over episodes of the number of times in each cell, the last one included."""
    visits = np.zeros(maze.grid.size)
    cells, happened = np.asarray(episodes.observations), np.asarray(episodes.mask) > 0
    np.add.at(visits, cells[happened], 1.0)
    np.add.at(visits, np.asarray(episodes.last_observations), 1.0)
    return visits.reshape(maze.grid.shape) / len(cells)


def marks_of(returns: Sequence[Array]) -> dict[str, Estimate]:
    """The measures in `MARKED` of all seeds' episodes together, with their intervals.

    Agents of different seeds differ, and their episodes are alike: so the bootstrap draws seeds, and then episodes of
    each. One seed has the intervals of `measure_risk`.
    """
    pooled = np.concatenate(returns)
    if len(returns) == 1 or pooled.min() == pooled.max():
        risk = measure_risk(pooled, seed=0)
        return {name: getattr(risk, name) for name in MARKED}
    n, rng = min(map(len, returns)), np.random.default_rng(0)
    table = np.stack([sample[:n] for sample in returns])
    seeds = rng.integers(len(table), size=(RESAMPLES, len(table), 1))
    drawn = table[seeds, rng.integers(n, size=(RESAMPLES, len(table), n))].reshape(RESAMPLES, -1)
    tail = (1 - CONFIDENCE) / 2
    return {
        name: Estimate(float(MEASURES[name](pooled)), *np.quantile(MEASURES[name](drawn), [tail, 1 - tail]).tolist())
        for name in MARKED
    }
