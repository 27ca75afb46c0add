"""Evaluations on the way: how good the policy as it was learned is, from time to time while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrl import exact
from steadyrl.episodes import Episodes
from steadyrl.returns import discounted_returns
from steadyrl.rollout import finite_face
from steadyrl.streams import Stream

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent
    from steadyrl.runs import Run

EXACT = ("mean", "variance", "gini_deviation")


class EvaluationCurve:
    """A listener of `learn_together`: each time `every` more episodes are learned from, plays `episodes` others.

    They are played twice: with the policy as learned, which for most methods is a random one and is what the returns
    that they optimise come from, and with its likeliest actions (`greedy_return`). In a finite process the mean,
    variance and Gini deviation of the discounted return are computed too, of the policy as learned.
    """

    def __init__(self, runs: Sequence[Run], every: int, episodes: int) -> None:
        self._runs, self._every, self._episodes = {id(run.agent): run for run in runs}, every, episodes
        self._last = {id(run.agent): run.evaluated for run in runs}

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Evaluate those agents whose turn it is; agents of one call are at the same episode."""
        if agents[0].episodes // self._every > self._last[id(agents[0])] // self._every:
            self._evaluate(agents)

    def finish(self) -> None:
        """Evaluate what was learned last, unless that has just been done."""
        agents = [run.agent for run in self._runs.values()]
        if agents[0].episodes > self._last[id(agents[0])]:
            self._evaluate(agents)

    def _evaluate(self, agents: Sequence[Agent]) -> None:
        for agent in agents:
            # Evaluations are numbered by the episodes learned from: the same whenever and however often they happen.
            seed = int(np.random.SeedSequence([agent.seed, Stream.EVALUATION, agent.episodes]).generate_state(1)[0])
            played = agent.play(self._episodes, seed)
            greedy = played if agent.names_one_action else agent.play(self._episodes, seed, deterministic=True)
            record = {"episodes": agent.episodes, "timesteps": agent.timesteps, **_means(played, agent.gamma)}
            record["greedy_return"] = float(greedy.rewards.sum(axis=1).mean())
            record |= {f"exact_{name}": value for name, value in exact_risk(agent).items()}
            self._runs[id(agent)].add_evaluation(record)
            self._last[id(agent)] = agent.episodes


def exact_risk(agent: Agent) -> dict[str, float]:
    """E, V and D of G0 under an agent's policy, if that is a table in a finite process.

    One by one: among several, the last bits of each depend on how many there are.
    """
    face = finite_face(agent.env) if agent.engine == "compiled" else None
    if face is None:
        return {}
    distribution = exact.return_distribution(face.mdp, agent.probabilities(), agent.gamma)
    return {name: float(getattr(distribution, name)) for name in EXACT}


def _means(played: Episodes, gamma: float) -> dict[str, float]:
    return {
        "return": float(played.rewards.sum(axis=1).mean()),
        "discounted_return": float(discounted_returns(played.rewards, gamma).mean()),
        "length": float(played.mask.sum(axis=1).mean()),
        **{name: float(np.mean(values)) for name, values in played.facts.items()},
    }
