"""Callbacks of `Agent.learn`: evaluate, stop, or call a function while an agent is trained.

    from steadyrl.evaluation.callbacks import EvaluateEvery, StopWhen  # or steadyrl.callbacks.EvaluateEvery
    agent.learn(200_000, callback=[EvaluateEvery(10_000, unit="timesteps"), StopWhen("return", at_least=475)])

A callback is any function or object that is called as `callback(locals, globals)` after each record of metrics, where
`locals["self"]` is the agent and `locals["metrics"]` the record. Training stops if it returns False.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import reprlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from steadyrl.agents.agent import Agent
from steadyrl.agents.mean_gini import MeanGini
from steadyrl.base.names import unknown
from steadyrl.base.parsing import parse_json
from steadyrl.envs.description import describe_env
from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.evaluation.evaluate import check, evaluate
from steadyrl.evaluation.reported import requested
from steadyrl.evaluation.risk_report import RiskReport
from steadyrl.training import checkpoint
from steadyrl.training.early_stopping import EarlyStopping
from steadyrl.training.loop import asks_to_stop

UNITS = ("episodes", "timesteps")
CRITERIA = ("mean", "mean_gini")
Criterion = str | Callable[[RiskReport], float]

__all__ = ["CallEvery", "EvaluateEvery", "StopWhen"]


class _Interval:
    """Every so many episodes or timesteps of each agent, counted from the start of its training."""

    def __init__(self, every: int, unit: str) -> None:
        _check_whole("every", every, 1, "it counts episodes or timesteps")
        if unit not in UNITS:
            raise ValueError(unknown("unit", unit, UNITS))
        self._every, self.unit = every, unit
        self._passed: WeakKeyDictionary[Agent, int] = WeakKeyDictionary()

    def resume(self, agent: Agent, at: float) -> None:
        """Count on from an earlier call, at so many episodes or timesteps."""
        self._passed[agent] = int(at) // self._every

    def is_due(self, agent: Agent) -> bool:
        """Whether the agent has passed another multiple of the interval since the last call."""
        passed = getattr(agent, self.unit) // self._every
        due = passed > self._passed.get(agent, 0)
        self._passed[agent] = passed
        return bool(due)


class CallEvery:
    """Calls `function(agent)` after every so many episodes or timesteps; training stops if it returns False.

    Records of metrics cover a few episodes, so it is called after the first record at or past each multiple of `every`.

    Example: `CallEvery(10_000, lambda agent: agent.save("latest.steady"))`.
    """

    def __init__(self, every: int, function: Callable[[Any], Any], unit: str = "episodes") -> None:
        if not callable(function):
            raise TypeError(f"function={function!r}: it cannot be called. Pass a function of the agent.")
        self._interval, self._function = _Interval(every, unit), function

    def __call__(self, local: dict[str, Any], world: dict[str, Any]) -> bool:
        """See `steadyrl.callbacks`."""
        agent = local["self"]
        return not (self._interval.is_due(agent) and asks_to_stop(self._function(agent)))


class StopWhen:
    """Stops training when a metric has reached a value in `patience` consecutive records.

    Metrics are those of training, such as "return" or "approx_kl": each record averages over a round of episodes, or
    about 50. To stop by the score of an evaluation, use `EvaluateEvery(..., stop_at=...)`.

    Example: `StopWhen("return", at_least=475, patience=3)`.

    Args:
        metric: A name in `agent.history[-1]`.
        at_least: The value to reach from below; or
        at_most: the value to reach from above.
        patience: In how many consecutive records.
    """

    def __init__(
        self, metric: str, at_least: float | None = None, at_most: float | None = None, patience: int = 1
    ) -> None:
        if (at_least is None) == (at_most is None):
            raise ValueError(
                f"at_least={at_least}, at_most={at_most}: one value of {metric} to stop at is needed. "
                "Pass either at_least=... or at_most=...."
            )
        _check_whole("patience", patience, 1, "it counts records")
        self._metric, self._patience = metric, patience
        self._sign = 1 if at_least is not None else -1
        self._limit = _number("at_most" if at_least is None else "at_least", at_most if at_least is None else at_least)
        self._reached: WeakKeyDictionary[Agent, int] = WeakKeyDictionary()

    def __call__(self, local: dict[str, Any], world: dict[str, Any]) -> bool:
        """See `steadyrl.callbacks`."""
        agent, record = local["self"], local["metrics"]
        # Metrics of updates are missing as long as there are none, before a replay buffer has filled.
        if self._metric not in record and record.get("updates", 1):
            raise ValueError(_unknown_metric(self._metric, record))
        value = record.get(self._metric, math.nan)
        count = self._reached.get(agent, 0) + 1 if self._sign * value >= self._sign * self._limit else 0
        self._reached[agent] = count
        if count < self._patience:
            return True
        side = "at least" if self._sign > 0 else "at most"
        _record_reason(local, f"{self._metric} was {side} {self._limit:.6g} in {count} consecutive records")
        return False


class EvaluateEvery:
    """Evaluates an agent after every so many training episodes or timesteps, and keeps the best one.

    Every evaluation plays the same episodes, from `seed`, which training never uses: so evaluations can be compared
    with each other, and training is the same to the last bit with and without them. The best of many scores is an
    optimistic estimate; evaluate the best agent again with another seed before you report it.

    By default the agent's own environment is used, between rounds, when no training episode is under way. Every
    training episode starts with `reset(seed=...)`; so this changes nothing in training, unless the environment keeps
    something from one episode to the next, such as the running statistics of a wrapper. For such an environment, and
    for a vector environment, pass another one as `env`.

    If training has a run folder (`learn(out=...)`), mean, Gini deviation and CVaR of each evaluation are recorded there
    in evaluations.jsonl, and `steadyrl report` draws them beside the training curves. The config there records why
    training stopped early, if it did. When such a run is resumed, `patience` counts the evaluations before too; one
    that was due when the run was interrupted is made after the next record.

    Attributes:
        reports: (timesteps, episodes, RiskReport) of each evaluation.
        best_score: The highest score so far, or -inf.
        best_report: The report with that score, or None.

    Args:
        every: How many; evaluations follow the first record of metrics at or past each multiple of it.
        env: Where to evaluate: a Gymnasium id, an environment or a function that makes one.
        episodes: How many to play.
        unit: What `every` counts, "episodes" or "timesteps".
        criterion: What is best: the highest "mean" of the undiscounted returns; or the highest "mean_gini", that mean
            less `risk_aversion` times their Gini deviation; or a function from the `RiskReport` to a score.
        risk_aversion: For "mean_gini"; by default that of a MeanGini agent. Of an agent that learns for a range of
            lambdas, `agent.at(risk_aversion)` is evaluated.
        save_best: A file that always holds the best agent so far, without its replay buffer. When an interrupted
            training is resumed, it is replaced by better agents alone.
        stop_at: Training stops when the score is at least this.
        patience: Training stops when the score has not improved in so many evaluations in a row.
        min_improvement: By how much more than the best one so far a score has to be to count as an improvement.
        deterministic: Whether to play the most likely actions.
        seed: Of the evaluation.
        measures: Names of further measures in the reports, as in `evaluate`, for a `criterion` of your own.
        verbose: Whether to print a line for each evaluation.
    """

    def __init__(
        self,
        every: int,
        env: EnvLike | None = None,
        *,
        episodes: int = 50,
        unit: str = "episodes",
        criterion: Criterion = "mean",
        risk_aversion: float | None = None,
        save_best: str | os.PathLike[str] | None = None,
        stop_at: float | None = None,
        patience: int | None = None,
        min_improvement: float = 0.0,
        deterministic: bool = False,
        seed: int = 0,
        measures: str | Iterable[str] = (),
        verbose: bool = True,
    ) -> None:
        if not callable(criterion) and criterion not in CRITERIA:
            raise ValueError(f"{unknown('criterion', str(criterion), CRITERIA)} Or pass a function of the RiskReport.")
        if risk_aversion is not None:
            risk_aversion = _number("risk_aversion", risk_aversion)
        _check_whole("episodes", episodes, 2, "risk is how the returns of episodes differ")
        _check_whole("seed", seed, 0, "random streams are numbered from 0")
        self._interval = _Interval(every, unit)
        self._env = None if env is None else resolve(env)
        self._criterion, self._risk_aversion = criterion, risk_aversion
        self._rule = _rule(stop_at, patience, min_improvement)
        self._scores: list[float] = []
        self._save_best = None if save_best is None else Path(save_best)
        self._how: dict[str, Any] = {"episodes": episodes, "deterministic": deterministic, "seed": seed}
        if names := list(requested(measures)):
            self._how["measures"] = names
        self._verbose = verbose
        self._agent: Agent | None = None
        self.reports: list[tuple[int, int, RiskReport]] = []
        self.best_score = -math.inf
        self.best_report: RiskReport | None = None

    def __call__(self, local: dict[str, Any], world: dict[str, Any]) -> bool:
        """See `steadyrl.callbacks`."""
        agent = local["self"]
        self._begin(agent, local.get("run"))
        if not self._interval.is_due(agent):
            return True
        report = evaluate(self._evaluated(agent), self._environment(agent), **self._how)
        self.reports.append((agent.timesteps, agent.episodes, report))
        score = self._score(report)
        if "run" in local:
            local["run"].add_evaluation({**_record(agent, report), "score": score})
        better = score > self.best_score
        if better:
            self.best_score, self.best_report = score, report
            self._save(agent)
        if self._verbose:
            print(
                f"{agent.name} after {agent.episodes:,} episodes ({agent.timesteps:,} steps): mean {report.mean}, "
                f"Gini deviation {report.gini_deviation}, score {score:.4g}{' (best)' if better else ''}"
            )
        self._scores.append(score)
        reason = self._rule.reason(self._scores) if self._rule else None
        if reason is not None:
            _record_reason(local, reason)
            if self._verbose:
                print(f"Training stops: {reason}.")
        return reason is None

    def _evaluated(self, agent: Agent) -> Agent:
        """The agent; or, if it learns for a range of lambdas, the agent for the one that is asked for."""
        if agent.risk_aversion_range is None or self._risk_aversion is None:
            return agent
        return agent.at(self._risk_aversion)

    def _environment(self, agent: Agent) -> Any:
        return agent.env if self._env is None else self._env

    def _begin(self, agent: Agent, run: Any) -> None:
        """At the first record, refuse what would fail at the first evaluation; later, refuse any other agent.

        A `run` that is resumed has evaluations already.
        """
        if self._agent is agent:
            return
        if self._agent is not None:
            raise ValueError(
                f"EvaluateEvery was called with a second agent ({agent.name}, seed {agent.seed}), but its reports and "
                "its best score are those of one. Make a new EvaluateEvery for each agent."
            )
        ranged = agent.risk_aversion_range is not None
        if self._risk_aversion is not None and self._criterion != "mean_gini" and not ranged:
            raise ValueError(
                f"risk_aversion={self._risk_aversion}: only criterion='mean_gini' uses it, and agents that learn for a "
                "range of lambdas. Set that criterion, or leave it out."
            )
        if self._risk_aversion is None and ranged:
            raise ValueError(f"{agent.name} learns for a range of lambdas: pass EvaluateEvery(risk_aversion=...).")
        check(self._evaluated(agent), self._environment(agent), self._how["episodes"], self._how["seed"])
        if self._criterion == "mean_gini" and self._risk_aversion is None:
            if not isinstance(agent, MeanGini):
                raise ValueError(
                    f"criterion='mean_gini': {agent.name} has no weight of the Gini deviation itself. "
                    "Pass risk_aversion=...."
                )
            self._risk_aversion = cast(float, agent.settings.risk_aversion)  # A range was refused above.
        self.best_score = self._saved_score(agent)
        self._agent = agent
        earlier = [record for record in run.evaluations if "score" in record] if run is not None else []
        if earlier:
            self._scores = [float(record["score"]) for record in earlier]
            self._interval.resume(agent, earlier[-1][self._interval.unit])

    def _score(self, report: RiskReport) -> float:
        if callable(self._criterion):
            score = float(self._criterion(report))
            if math.isnan(score):
                raise ValueError("criterion: it returned NaN, which no score compares with. Return a number.")
            return score
        weight = self._risk_aversion or 0.0 if self._criterion == "mean_gini" else 0.0
        return report.mean.value - weight * report.gini_deviation.value

    def _scoring(self) -> dict[str, Any]:
        """What a score depends on besides the agent."""
        criterion = getattr(self._criterion, "__qualname__", self._criterion)
        return {"criterion": str(criterion), "risk_aversion": self._risk_aversion, **self._how}

    def _save(self, agent: Agent) -> None:
        if self._save_best is not None:
            self._save_best.parent.mkdir(parents=True, exist_ok=True)
            note = {"score": self.best_score, "scoring": self._scoring()}
            checkpoint.write(agent, self._save_best, replay_buffer=False, note=note)

    def _saved_score(self, agent: Agent) -> float:
        """The score in the file, if that holds an earlier state of this very agent, scored in the same way."""
        if self._save_best is None or not self._save_best.is_file():
            return -math.inf
        header = checkpoint.read_header(self._save_best)
        note, names = header["note"], ("agent", "settings", "seed", "env")
        if not isinstance(note, dict):
            return -math.inf
        own = (agent.name, dataclasses.asdict(agent.settings), agent.seed, describe_env(agent.env))
        same = [header[name] for name in names] == parse_json(json.dumps(own))
        earlier = header["timesteps"] <= agent.timesteps
        if not same or not earlier or note.get("scoring") != self._scoring():
            return -math.inf
        score = note.get("score")
        if not isinstance(score, float) or math.isnan(score):
            raise ValueError(f"{self._save_best}: its score is {reprlib.repr(score)}, not a number. Remove the file.")
        return score


def _rule(stop_at: Any, patience: Any, min_improvement: Any) -> EarlyStopping | None:
    """When to stop; None for never."""
    improvement = _number("min_improvement", min_improvement)
    if patience is not None:
        _check_whole("patience", patience, 1, "it counts evaluations")
    if stop_at is None and patience is None and not improvement:
        return None
    return EarlyStopping(patience, improvement, None if stop_at is None else _number("stop_at", stop_at))


def _record_reason(local: dict[str, Any], reason: str) -> None:
    """Why training stops, for the run folder if there is one."""
    if "run" in local:
        local["run"].why_stopped = reason


def _check_whole(name: str, value: Any, least: int, reason: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: {reason}. Pass a whole number of at least {least}.")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or math.isnan(value):
        raise ValueError(f"{name}={value!r}: it is compared with metrics and scores. Pass a number.")
    return float(value)


def _record(agent: Agent, report: RiskReport) -> dict[str, float]:
    """A line of evaluations.jsonl."""
    counters = {"episodes": agent.episodes, "timesteps": agent.timesteps}
    risk = {"undiscounted_gini_deviation": report.gini_deviation.value, "cvar_10": report.cvar_10.value}
    return {**counters, "return": report.mean.value, **risk}


def _unknown_metric(name: str, record: dict[str, Any]) -> str:
    """One line with the nearest name and with all of them, however many."""
    text, listing = unknown("metric", name, record), f" Known: {', '.join(sorted(record))}."
    return text if text.endswith(listing) else text + listing
