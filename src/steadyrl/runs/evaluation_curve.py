"""Evaluations of the learned policy during training, in episodes that are not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrl import exact
from steadyrl.agents.agent import Agent
from steadyrl.base.seeding import evaluation_seed
from steadyrl.envs.finite import finite_model
from steadyrl.risk import gini_deviation
from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.early_stopping import EarlyStopping
from steadyrl.training.returns import discounted_returns
from steadyrl.training.run_folder import Run

EXACT = ("mean", "variance", "gini_deviation")


class EvaluationCurve:
    """A listener of the training loop: plays `episodes` evaluation episodes after each `every` training episodes.

    They are played twice: with the learned policy, which for most methods is stochastic and is what the optimized
    returns come from, and with its most likely actions (`greedy_return`). In a finite MDP the mean, variance and Gini
    deviation of the discounted return are computed too, of the learned policy.
    """

    def __init__(self, runs: Sequence[Run], every: int, episodes: int) -> None:
        self._runs, self._every, self._episodes = {id(run.agent): run for run in runs}, every, episodes
        earlier = {id(run.agent): run.evaluations for run in runs}
        self._last = {key: int(found[-1]["episodes"]) if found else 0 for key, found in earlier.items()}

    def __call__(self, agents: Sequence[Any], records: Any) -> None:
        """Evaluate if it is time; agents of one call are at the same episode."""
        if agents[0].episodes // self._every > self._last[id(agents[0])] // self._every:
            self._evaluate(agents)

    def finish(self) -> None:
        """Evaluate the final policy, unless that has just been done."""
        agents = [run.agent for run in self._runs.values()]
        if agents[0].episodes > self._last[id(agents[0])]:
            self._evaluate(agents)

    def _evaluate(self, agents: Sequence[Any]) -> None:
        for agent in agents:
            # Seeds follow from the number of training episodes: evaluations do not depend on each other.
            seed = evaluation_seed(agent.seed, agent.episodes)
            played = agent.play(self._episodes, seed)
            greedy = played if agent.is_deterministic else agent.play(self._episodes, seed, deterministic=True)
            record = {"episodes": agent.episodes, "timesteps": agent.timesteps, **_means(played, agent.gamma)}
            record["greedy_return"] = float(greedy.rewards.sum(axis=1).mean())
            record |= {f"exact_{name}": value for name, value in exact_risk(agent).items()}
            record |= self.scored(played)
            self._runs[id(agent)].add_evaluation(record)
            self._last[id(agent)] = agent.episodes

    def scored(self, played: Episodes) -> dict[str, float]:
        """What else an evaluation's record holds."""
        return {}


class StoppingCurve(EvaluationCurve):
    """An `EvaluationCurve` of one run that stops its training by a rule.

    The scores are in the records of evaluations, so a run that is resumed stops where it would have stopped anyway.
    """

    def __init__(self, runs: Sequence[Run], every: int, episodes: int, rule: EarlyStopping) -> None:
        super().__init__(runs, every, episodes)
        (run,) = runs
        self._rule, self._scores = rule, [record["score"] for record in run.evaluations if "score" in record]
        self.stop_reason = rule.reason(self._scores)

    def scored(self, played: Episodes) -> dict[str, float]:
        """The score, by which it is decided whether to stop."""
        returns = played.rewards.sum(axis=1)
        spread = float(gini_deviation(returns))
        self._scores.append(self._rule.score(float(returns.mean()), spread))
        self.stop_reason = self._rule.reason(self._scores)
        return {"undiscounted_gini_deviation": spread, "score": self._scores[-1]}


def exact_risk(agent: Agent) -> dict[str, float]:
    """E, V and D of G0 under an agent's policy, if that is a table in a finite MDP.

    One agent at a time: in a batch, the last bits of each depend on its size.
    """
    model = finite_model(agent.env) if agent.engine == "compiled" else None
    if model is None:
        return {}
    distribution = exact.return_distribution(model.mdp, agent.probabilities(), agent.gamma)
    return {name: float(getattr(distribution, name)) for name in EXACT}


def _means(played: Episodes, gamma: float) -> dict[str, float]:
    return {
        "return": float(played.rewards.sum(axis=1).mean()),
        "discounted_return": float(discounted_returns(played.rewards, gamma).mean()),
        "length": float(played.mask.sum(axis=1).mean()),
        **{name: float(np.mean(values)) for name, values in played.episode_metrics.items()},
    }
