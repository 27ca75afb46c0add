"""What a study of settings is made of: an agent, its search space, seeds, budgets, and what is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import AGENTS
from steadyrl.base.names import unknown
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation.reported import REPORTED, higher_is_better, requested, statistics
from steadyrl.evaluation.risk_report import MAX_DRAWS
from steadyrl.evaluation.seed_bootstrap import MIN_RESAMPLES
from steadyrl.runs.final_evaluation import EPISODES
from steadyrl.runs.job import Job, command_line
from steadyrl.runs.risk_aversions import default_range, has_risk_aversion
from steadyrl.runs.search_space import Dimension, Space, check_space, default_space
from steadyrl.runs.sweep import SWEEP_EPISODES_PER_RECORD, budget_of
from steadyrl.training.checkpoint_timer import SECONDS
from steadyrl.training.run import Plan

TRIALS, SEEDS = 50, 3
QUANTILE = 0.1
"""Of the resamples of an objective: it is exceeded with a confidence of 90 %."""
RESAMPLES = 500
SAMPLER_SEEDS = 2**32
"""How many seeds Optuna's sampler takes: those of NumPy's `RandomState`."""
SHORT = {"gini": "gini_deviation", "std": "standard_deviation", "cvar": "cvar_10"}
"""Short names of measures of a report."""


@dataclass(frozen=True)
class TunePlan:
    """What to train and evaluate in each trial, and how trials are compared."""

    env: str
    agent: str
    settings: dict[str, Any] = field(default_factory=dict)
    """Those that are not searched."""
    space: Space = field(default_factory=dict)
    env_options: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = tuple(range(SEEDS))
    budget: dict[str, int] = field(default_factory=lambda: budget_of(None, None))
    episodes: int = EPISODES
    """Evaluation episodes of each policy."""
    measure: str = "gini_deviation"
    risk_aversion: float = 0.0
    """Lambda of the objective."""
    objectives: tuple[str, ...] = ()
    """Several measures, each of which is an objective; with none there is one objective, the lower bound."""
    sampler_seed: int = 0
    engine: str = "auto"
    checkpoint_seconds: float = SECONDS

    def objective_text(self) -> str:
        """What is maximized, in words."""
        if self.objectives:
            ways = [f"{'low' if name in self.lower_is_better else 'high'} {name}" for name in self.objectives]
            return " and ".join(ways)
        risk = f" - {self.risk_aversion:g} {self.measure}" if self.risk_aversion else ""
        return f"lower {1 - QUANTILE:.0%} bound of mean{risk}"

    @property
    def lower_is_better(self) -> set[str]:
        """Which measures are better if they are lower."""
        return {name for name in (*self.objectives, self.measure) if not higher_is_better(name)}

    def values(self, returns: Sequence[NDArray[np.float64]]) -> tuple[float, ...]:
        """The objectives of a trial, from the returns of each seed's evaluation episodes."""
        if not self.objectives:
            return (lower_bound(returns, self.measure, self.risk_aversion),)
        known = statistics(name for name in self.objectives if name not in REPORTED)
        pooled = np.concatenate(returns)
        return tuple(float(known[name](pooled)) for name in self.objectives)

    def cell(self, out: Path, number: int, params: Mapping[str, Any], seeds: Sequence[int]) -> Job:
        """The runs of a trial with some of the seeds."""
        return Job.cell(
            env=self.env,
            env_options=self.env_options,
            agent=self.agent,
            settings={**self.settings, **params},
            seeds=seeds,
            folder=out / "trials" / f"{number:04d}",
            title=f"trial {number}",
            plan=Plan(
                self.budget,
                episodes_per_record=SWEEP_EPISODES_PER_RECORD,
                checkpoint_seconds=self.checkpoint_seconds,
                command=command_line(),
            ),
            engine=self.engine,
        )

    def record(self) -> dict[str, Any]:
        """What the trials of a study have in common."""
        return {
            "env": self.env,
            "env_options": self.env_options,
            "agent": self.agent,
            "settings": self.settings,
            "space": {name: dimension.as_data() for name, dimension in self.space.items()},
            "seeds": list(self.seeds),
            "budget": self.budget,
            "evaluation_episodes": self.episodes,
            "objectives": list(self.objectives),
            "measure": self.measure,
            "risk_aversion": self.risk_aversion,
            "engine": self.engine,
        }


def lower_bound(returns: Sequence[NDArray[np.float64]], measure: str, risk_aversion: float) -> float:
    """A lower confidence bound of J = mean(R) - lambda risk(R), R the returns of all seeds together.

    It is the 10 % quantile of J over resamples, each of which draws as many seeds as there are, with replacement, and
    then episodes within each of them. So seeds that differ cost as much as returns that are uncertain. Of CVaR, more is
    better: the risk is minus it.
    """
    n, rng = min(map(len, returns)), np.random.default_rng(0)
    table = np.stack([np.asarray(sample[:n], float) for sample in returns])
    resamples = int(np.clip(MAX_DRAWS // table.size, MIN_RESAMPLES, RESAMPLES))
    seeds = rng.integers(len(table), size=(resamples, len(table), 1))
    drawn = table[seeds, rng.integers(n, size=(resamples, len(table), n))].reshape(resamples, -1)
    known = [] if measure in REPORTED else [measure]
    sign = -1 if higher_is_better(measure) else 1
    J = drawn.mean(axis=-1)
    if risk_aversion:
        J = J - risk_aversion * sign * np.asarray(statistics(known)[measure](drawn))
    return float(np.quantile(J, QUANTILE))


def measure_named(name: str) -> str:
    """The name of a measure in reports; an error if there is none."""
    name = SHORT.get(name, name)
    if name not in REPORTED:
        try:
            requested(name)
        except ValueError:
            raise ValueError(unknown("measure", name, [*REPORTED, *SHORT])) from None
    return name


def plan_of(
    env: Any,
    agent: str,
    settings: Mapping[str, Any],
    search: Space,
    *,
    only: bool = False,
    measure: str | None = None,
    risk_aversion: float | None = None,
    objectives: Sequence[str] = (),
    env_options: Mapping[str, Any] | None = None,
    engine: str = "auto",
    **options: Any,
) -> TunePlan:
    """A plan from what users give; mistakes are errors here, before anything is trained."""
    if not isinstance(env, str):
        raise ValueError(
            f"env is a {type(env).__name__}: runs are trained in processes of their own, which need its name. "
            "Pass a Gymnasium id or module:factory, with env_options=..."
        )
    named = tuple(measure_named(name) for name in objectives)
    if len(named) == 1 or len(set(named)) < len(named):
        raise ValueError("objectives: name at least two, each once; for one objective leave them out.")
    if named and (measure is not None or risk_aversion is not None):
        raise ValueError("objectives: with several there is no lambda. Leave out measure and risk_aversion.")
    make_env = partial(resolve, env, **dict(env_options or {}))

    made = AGENTS[agent](make_env, engine=engine, **settings)

    def check(given: Mapping[str, Any]) -> None:
        chosen = made.chosen({**settings, **given}, made.observation_space, made.action_space)
        made.settings_of(chosen).resolve(made.env_kind)

    space = {} if only else default_space(made)
    if named and has_risk_aversion(agent) and not only:
        lambdas = default_range(agent, settings)
        low = max(min(lambdas), 0.05) if agent == "mg" else min(lambdas)
        space["risk_aversion"] = Dimension("risk_aversion", "float", low, max(lambdas), log=True)
    space = {name: one for name, one in {**space, **search}.items() if name not in settings}
    for name in search:
        if name in settings:
            raise ValueError(f"{name}: it is set to {settings[name]} and searched too. Leave out one of the two.")
    if not space:
        raise ValueError(
            "search: there is no setting to search. Give some, such as policy_learning_rate=1e-4:1e-2:log."
        )
    check_space(check, space)
    own = getattr(made.settings, "risk_aversion", 0.0)
    if isinstance(own, tuple):
        raise ValueError("risk_aversion is a range: tune an agent with one lambda, or several objectives.")
    named_by_agent = {"mg": "gini", "mean_risk": str(settings.get("measure", "gini"))}
    penalized = named_by_agent.get(agent, "variance" if has_risk_aversion(agent) else "gini")
    plan = TunePlan(
        env=env,
        agent=agent,
        settings=dict(settings),
        space=space,
        env_options=dict(env_options or {}),
        measure=measure_named(measure or penalized),
        risk_aversion=float(own if risk_aversion is None else risk_aversion),
        objectives=named,
        engine=engine,
        **options,
    )
    _check_numbers(plan)
    plan.cell(Path(), 0, {}, plan.seeds[:1]).plan.check([made])  # The budget, and how often to write checkpoints.
    return plan


def _check_numbers(plan: TunePlan) -> None:
    if plan.episodes < 2:
        raise ValueError(f"evaluation episodes {plan.episodes}: risk needs at least 2, and about 200 to be useful.")
    if not 0 <= plan.risk_aversion < float("inf"):
        raise ValueError(f"risk_aversion {plan.risk_aversion}: it is a finite number of at least 0.")
    if not plan.seeds:
        raise ValueError("seeds: at least one is needed.")
    if not 0 <= plan.sampler_seed < SAMPLER_SEEDS:
        raise ValueError(f"seed {plan.sampler_seed}: that of the search is from 0 to 2**32 - 1.")
