"""Policies for the search of a lambda: what to train, and how each lambda is trained and evaluated in run folders."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS
from steadyrl.evaluation.frontier import MEASURES, FrontierPoint, short
from steadyrl.evaluation.risk_report import RiskReport
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.frontier import Place
from steadyrl.runs.frontier_plan import check_risk
from steadyrl.runs.job import Job, command_line
from steadyrl.runs.limit_search import MOST, PRECISION, TITLES, Limit
from steadyrl.runs.risk_aversions import has_risk_aversion, penalty
from steadyrl.runs.sweep import SWEEP_EPISODES_PER_RECORD, budget_of, folder_name, short_name
from steadyrl.training.checkpoint_timer import SECONDS
from steadyrl.training.run import Plan
from steadyrl.training.run_files import CHECKPOINT
from steadyrl.training.run_folder import is_complete
from steadyrl.training.warm_start import place_start

EVALUATION_EPISODES = 500
"""By default: a policy is accepted by its interval, which should be narrow."""
WARM_BUDGET = 0.5
"""By default: the two runs within a bracket together cost as much as one from scratch (deviation 70)."""


@dataclass(frozen=True)
class CalibrationPlan:
    """What to train, and the limit that it is to respect."""

    env: str
    limit: Limit
    agent: str = "mg"
    settings: dict[str, Any] = field(default_factory=dict)
    env_options: dict[str, Any] = field(default_factory=dict)
    bracket: tuple[float, float] | None = None
    """Lambdas to search between; by default from 0 on, as far as needed."""
    seeds: tuple[int, ...] = (0,)
    budget: dict[str, int] = field(default_factory=lambda: budget_of(None, None))
    warm_budget: float = WARM_BUDGET
    """The part of the budget that a run gets that begins with a trained policy; 0 to begin all of them untrained."""
    most: int = MOST
    precision: float = PRECISION
    episodes: int = EVALUATION_EPISODES
    deterministic: bool = False
    engine: str = "auto"
    checkpoint_seconds: float = SECONDS

    def __post_init__(self) -> None:
        if not isinstance(self.env, str):
            raise ValueError(
                f"env is a {type(self.env).__name__}: runs are trained in processes of their own, which need its "
                "name. Pass a Gymnasium id or module:factory, with env_options=..."
            )
        if not has_risk_aversion(self.agent):
            averse = ", ".join(sorted(name for name in AGENTS if has_risk_aversion(name)))
            raise ValueError(f"agent {self.agent}: it has no risk aversion to calibrate. Choose one of {averse}.")
        if "risk_aversion" in self.settings:
            raise ValueError("risk_aversion is what is searched for: leave it out, or give a bracket.")
        checks = (("lambdas", self.most, 2), ("evaluation episodes", self.episodes, 2), ("seeds", len(self.seeds), 1))
        for name, value, least in checks:
            if value < least:
                raise ValueError(f"{name} {value}: at least {least} are needed.")
        if not 0 < self.precision < 1:
            raise ValueError(f"precision {self.precision:g}: it is a width relative to lambda, between 0 and 1.")
        if not 0 <= self.warm_budget <= 1:
            raise ValueError(f"warm budget {self.warm_budget:g}: it is a part of the budget, from 0 to 1.")
        low, high = self.bracket or (0.0, math.inf)
        if not 0 <= low < high or (self.bracket is not None and not math.isfinite(high)):
            raise ValueError(f"risk aversion {low:g} to {high:g}: the low end is at least 0, and below the high end.")
        check_risk(self.agent, self.settings, low)


class Trainer:
    """Trains and evaluates a policy for a lambda, in run folders; a `Train` of the search.

    Training from scratch may settle in a local optimum, and a trained policy hardly leaves one. So within a bracket
    there are two runs for each seed, which begin with the policies at its two ends, and the one counts that is better
    by the agent's own objective: the policies of both ends compete for every lambda between them. In both runs lambda
    counts in full from the start, without `risk_warmup`: their policies have learned the task already, and only the one
    from lambda 0, which has no critic to count episodes, would be warmed up.
    """

    def __init__(self, plan: CalibrationPlan, place: Place) -> None:
        self.plan, self.place = plan, place
        self.folders: dict[float, Path] = {}
        """Lambda -> the run folder of its best policy."""

    def __call__(self, aversion: float, neighbours: tuple[float, ...] = ()) -> FrontierPoint:
        """Train what is missing, evaluate it, and return the best policy."""
        plan, place = self.plan, self.place
        starts = neighbours if plan.warm_budget else ()
        cells = [self._cell(aversion, start) for start in starts] or [self._cell(aversion)]
        failures = place.train(cells, plan.episodes, plan.deterministic)
        folders = [folder for cell in cells for folder in cell.folders if self._is_evaluated(folder)]
        if not folders:
            raise ValueError(f"lambda {aversion:g}: {failures[0]} The same command tries again.")
        for failure in failures:
            print(f"Left out: {failure} The same command tries again.", flush=True)
        self.folders[aversion] = max(folders, key=partial(self._objective, aversion))
        best = self._point(aversion, self.folders[aversion])
        self._print(best)
        return best

    def _print(self, point: FrontierPoint) -> None:
        limit = self.plan.limit
        measured, other = limit.measure, "mean" if limit.needs_risk_aversion else "gini_deviation"
        e = getattr(point, measured)
        interval = f"{TITLES[measured]} {short(e.value)} [{short(e.low)}, {short(e.high)}]"
        answer = f"{limit}: {'met' if limit.met(point) else 'not met'}"
        also = f"{TITLES[other]} {short(getattr(point, other).value)}"
        print(f"lambda {point.risk_aversion:g}: {interval}, {also}. {answer}.", flush=True)

    def _objective(self, aversion: float, folder: Path) -> float:
        """What the agent of a run maximizes, of undiscounted returns: the mean minus lambda times its penalty."""
        returns = self.report(folder).returns
        return float(returns.mean() - aversion * penalty(self.plan.agent, self.plan.settings, returns))

    def _cell(self, aversion: float, start: float | None = None) -> Job:
        """The runs for a lambda: from scratch, or from the policy for another lambda."""
        plan = self.plan
        ((of_what, total),) = plan.budget.items()
        budget = total if start is None else max(1, round(plan.warm_budget * total))
        settings = {**plan.settings, "risk_aversion": aversion}
        began = {} if start is None else {"from": start}
        place = folder_name(short_name(plan.env), plan.env_options)
        method = folder_name(plan.agent, {**settings, **began}, ("risk_aversion", "from"))
        cell = Job.cell(
            env=plan.env,
            env_options=plan.env_options,
            agent=plan.agent,
            settings=settings if start is None else {k: v for k, v in settings.items() if k != "risk_warmup"},
            seeds=plan.seeds,
            folder=self.place.out / place / method,
            title=f"{place} {method}",
            engine=plan.engine,
            plan=Plan(
                {of_what: budget},
                episodes_per_record=SWEEP_EPISODES_PER_RECORD,
                checkpoint_seconds=plan.checkpoint_seconds,
                command=command_line(),
            ),
        )
        if start is not None:
            for folder in cell.folders:
                place_start(folder, self.folders[start] / CHECKPOINT)
        return cell

    def _point(self, aversion: float, folder: Path) -> FrontierPoint:
        report = self.report(folder)
        measures = {name: getattr(report, name) for name in MEASURES}
        run = folder.relative_to(self.place.out).as_posix()
        return FrontierPoint(self.plan.agent, aversion, **measures, seeds=1, episodes=report.episodes, runs=(run,))

    def _is_evaluated(self, folder: Path) -> bool:
        """Not if its training or its evaluation failed."""
        found = read_evaluation(folder, self.plan.episodes, self.plan.deterministic) if is_complete(folder) else None
        return found is not None

    def report(self, folder: Path) -> RiskReport:
        """The evaluation of a run."""
        found = read_evaluation(folder, self.plan.episodes, self.plan.deterministic)
        assert found is not None, "it was just evaluated"
        return found.report()
