"""Records: the metrics of one or a few rounds, as plain numbers."""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from steadyrl.risk import gini_deviation, variance
from steadyrl.training.algorithm import Learner, Trainee
from steadyrl.training.engines.engine import Rounds

Record = dict[str, Any]
"""Name -> number: counters, means over the episodes of the rounds, and the metrics of their updates."""

COUNTERS = ("iteration", "episodes", "timesteps", "time")
WORK = ("idle_steps", "seconds_")
"""How the names of metrics begin that are summed over rounds."""
MEANS = ("return", "discounted_return", "length")
DISPERSIONS = {"gini_deviation": gini_deviation, "variance": variance}
UPDATES = (
    "updates", "policy_loss", "gradient_norm", "value_loss", "explained_variance", "entropy", "approx_kl",
    "clip_fraction", "risk_weight_mean", "risk_weight_std", "risk_credit_std", "risk_critic_loss", "critic_loss",
    "mean_q",
)  # fmt: skip
"""The metrics of the updates of all methods."""
EVALUATIONS = ("greedy_", "exact_")
"""How the names begin that only records of evaluations have."""


MAX_HISTORY = 10_000
"""The number of records that `agent.history` keeps, the latest; a run folder has all of them."""


def is_reserved(name: str) -> bool:
    """Whether records have something of that name, which an episode metric of an environment would overwrite."""
    taken = (*COUNTERS, *MEANS, *DISPERSIONS, *(f"undiscounted_{name}" for name in DISPERSIONS), *UPDATES)
    return name in taken or name.startswith((*WORK, *EVALUATIONS))


def take_over(agent: Trainee, learner: Learner, rounds: Rounds, per_record: int) -> list[Record]:
    """Move an agent to where its `learner` is now, and return the records of its rounds, `per_record` in each."""
    agent.learner = learner
    whole = len(rounds.lengths) // per_record * per_record
    latest = _records(agent, jax.tree.map(lambda x: x[:whole], rounds), per_record)
    # The rest at the end of a budget makes a shorter record.
    latest += _records(agent, jax.tree.map(lambda x: x[whole:], rounds), len(rounds.lengths) - whole)
    agent.history.extend(latest)
    del agent.history[:-MAX_HISTORY]
    return latest


def _records(agent: Trainee, rounds: Rounds, per_record: int) -> list[Record]:
    """The records of rounds [c, n], all computed at once."""
    count = len(rounds.lengths) // per_record if per_record else 0
    if not count:
        return []
    by_record: Rounds = jax.tree.map(lambda x: np.asarray(x, np.float64).reshape(count, -1), rounds)
    episodes, timesteps = by_record.lengths.shape[1], by_record.lengths.sum(axis=1)
    columns = {
        "return": by_record.returns.mean(axis=1),
        "discounted_return": by_record.discounted_returns.mean(axis=1),
        **(dispersions(by_record.returns, by_record.discounted_returns) if episodes > 1 else {}),
        "length": by_record.lengths.mean(axis=1),
        **{name: values.mean(axis=1) for name, values in by_record.episode_metrics.items()},
        **{name: values.mean(axis=1) for name, values in by_record.update_metrics.items()},
        **{name: values.sum(axis=1) for name, values in by_record.work.items()},
    }
    latest = []
    for r in range(count):
        agent.iterations += per_record
        agent.episodes += episodes
        agent.timesteps += int(timesteps[r])
        counters = {"iteration": agent.iterations, "episodes": agent.episodes, "timesteps": agent.timesteps}
        means = {name: float(column[r]) for name, column in columns.items()}
        latest.append({**counters, **means, "time": round(time.time(), 3)})
    return latest


def dispersions(returns: Any, discounted_returns: Any) -> Record:
    """Gini deviation and variance of the returns of at least two episodes, by name; over the last axis."""
    discounted = {name: measure(discounted_returns) for name, measure in DISPERSIONS.items()}
    return discounted | {f"undiscounted_{name}": measure(returns) for name, measure in DISPERSIONS.items()}


def merge_records(records: list[Record]) -> Record:
    """Counters and clock of the last record, the sum of the work, the mean of everything else."""
    last = records[-1]
    names = dict.fromkeys(name for record in records for name in record)  # Not every round has an update.
    reduce = {name: np.sum if name.startswith(WORK) else np.mean for name in names}
    merged = {
        name: last[name] if name in COUNTERS else float(reduce[name]([r[name] for r in records if name in r]))
        for name in names
    }
    single_episodes = len(records) == 1 + last["episodes"] - records[0]["episodes"]
    if len(records) > 1 and single_episodes:  # They have no dispersion of their own.
        spread = dispersions(*(np.array([r[name] for r in records]) for name in ("return", "discounted_return")))
        merged |= {name: float(value) for name, value in spread.items()}
    return merged
