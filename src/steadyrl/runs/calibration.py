"""A limit instead of a lambda: train policies in run folders until the best one within the limit is found."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steadyrl.agents import Agent, agent_class, load
from steadyrl.base.files import write_atomic
from steadyrl.envs.finite import finite_model
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation.frontier import (
    MEASURES,
    RISKS,
    WIDTH,
    ExactPoint,
    Frontier,
    FrontierPoint,
    exact_points,
    short,
)
from steadyrl.evaluation.risk_report import RiskReport, aligned
from steadyrl.runs.calibration_trainer import EVALUATION_EPISODES, WARM_BUDGET, CalibrationPlan, Trainer
from steadyrl.runs.frontier import Place
from steadyrl.runs.frontier_auto import unit
from steadyrl.runs.frontier_plan import default_out
from steadyrl.runs.job import command_line
from steadyrl.runs.limit_search import MOST, PRECISION, Limit, Search
from steadyrl.runs.risk_aversions import bracket_of, in_units_of_return
from steadyrl.runs.sweep import budget_of, seeds_of
from steadyrl.training.run_folder import versions

HIGH = 2.0
"""The upper end of the bracket by default, times the `unit` of the agent's risk."""
FILE, PICTURE = "calibration.json", "calibration.png"


@dataclass(frozen=True)
class Calibration:
    """The policy that was found, and all that was tried; `str(calibration)` is a table."""

    limit: Limit
    agent: Agent | None
    """The trained agent; None if none of the lambdas tried reaches the limit."""
    risk_aversion: float | None
    """Its lambda."""
    report: RiskReport | None
    """Its evaluation, on which the decision was made."""
    tried: tuple[FrontierPoint, ...]
    """In order; with several seeds, the best policy of each lambda."""
    reason: str
    """Why the search ended."""
    folder: str | None
    """The run folder of the policy, within that of the search."""
    frontier: Frontier
    """The same points, to be drawn."""

    @property
    def found(self) -> bool:
        """Whether a policy meets the limit."""
        return self.agent is not None

    def __str__(self) -> str:
        rows = [["", "lambda", "mean", *RISKS.values(), "limit"]]
        for point in sorted(self.tried, key=lambda point: point.risk_aversion or 0.0):
            mark = "*" if self.found and point.risk_aversion == self.risk_aversion else ""
            rows.append(
                [mark, f"{point.risk_aversion:.4g}", *self._cells(point), "met" if self.limit.met(point) else "not met"]
            )
        lines = [self.headline(), "", aligned(rows, gap=2), "", *textwrap.wrap(self.reason, WIDTH)]
        return "\n".join(lines)

    def headline(self) -> str:
        """What was found, in a line or two."""
        if not self.found:
            return f"{self.limit}: not reached. Nothing is returned."
        return f"{self.limit}: lambda {self.risk_aversion:.4g} (* below)."

    def _cells(self, point: FrontierPoint) -> list[str]:
        """All measures, with the interval of the one that is limited."""
        cells = []
        for name in MEASURES:
            estimate = getattr(point, name)
            interval = f" [{short(estimate.low)}, {short(estimate.high)}]" if name == self.limit.measure else ""
            cells.append(f"{short(estimate.value)}{interval}")
        return cells

    def to_dict(self) -> dict[str, Any]:
        """The content of calibration.json."""
        return {
            "risk_aversion": self.risk_aversion,
            "run": self.folder,
            "reason": self.reason,
            **self.frontier.to_dict(),
        }


def run_calibration(plan: CalibrationPlan, place: Place) -> Calibration:
    """Search; what was tried is saved in the folder, which the same plan resumes from."""
    env = resolve(plan.env, **plan.env_options)
    model = finite_model(env)
    env.close()
    exact = exact_points(model.mdp) if model is not None else ()
    refuse_impossible(plan.limit, exact)
    trainer = Trainer(plan, place)
    search = Search(trainer, plan.limit, plan.most, plan.precision)
    if plan.bracket is not None:
        search.doublings = 0
        search.run(*plan.bracket)
    else:
        search.run(0.0, lambda neutral: HIGH * unit(in_units_of_return(plan.agent, plan.settings), neutral))
    calibration = _result(plan, search, trainer, exact)
    write_atomic(place.out / FILE, json.dumps(calibration.to_dict(), indent=1).encode())
    return calibration


def _result(plan: CalibrationPlan, search: Search, trainer: Trainer, exact: tuple[ExactPoint, ...]) -> Calibration:
    best = search.best
    folder = trainer.folders[best.risk_aversion or 0.0] if best is not None else None
    details = {
        "command": command_line(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": versions(),
        "settings": {
            "agents": {plan.agent: plan.settings},
            "seeds": list(plan.seeds),
            "budget": plan.budget,
            "warm_budget": plan.warm_budget,
            "evaluation_episodes": plan.episodes,
            "deterministic": plan.deterministic,
        },
        "limit": {"measure": plan.limit.measure, "bound": plan.limit.bound, "at_most": plan.limit.at_most},
    }
    return Calibration(
        limit=plan.limit,
        agent=None if folder is None else _load(plan, folder),
        risk_aversion=None if best is None else best.risk_aversion,
        report=None if folder is None else trainer.report(folder),
        tried=tuple(search.tried),
        reason=search.reason,
        folder=None if best is None else best.runs[0],
        frontier=Frontier(tuple(search.tried), plan.env, plan.env_options, exact, details),
    )


def _load(plan: CalibrationPlan, folder: Path) -> Agent:
    return load(folder, lambda: resolve(plan.env, **plan.env_options))


def refuse_impossible(limit: Limit, exact: Sequence[ExactPoint]) -> None:
    """An error if the exact frontier shows that no policy meets the limit."""
    values = [getattr(point, limit.measure) for point in exact]
    if not values:
        return
    best = min(values) if limit.at_most else max(values)
    if (best > limit.bound) if limit.at_most else (best < limit.bound):
        raise ValueError(f"{limit}: no policy reaches it in this environment, where the best possible is {best:.4g}.")


def calibrate(
    env: str,
    agent: str = "mg",
    measure: str = "gini",
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    settings: Mapping[str, Any] | None = None,
    env_options: Mapping[str, Any] | None = None,
    risk_aversion: str | tuple[float, float] | None = None,
    seeds: int | list[int] = 1,
    episodes: int | None = None,
    timesteps: int | None = None,
    warm_budget: float = WARM_BUDGET,
    lambdas: int = MOST,
    precision: float = PRECISION,
    evaluation_episodes: int = EVALUATION_EPISODES,
    deterministic: bool = False,
    out: str | Path | None = None,
    on: str = "local",
    address: str | None = None,
    engine: str = "auto",
    progress: bool = True,
) -> Calibration:
    """Train the policy with the highest mean within a limit of risk; or with the least risk above a limit of the mean.

    Example:
        >>> found = calibrate("steadyrl/GuardedMaze-v0", measure="gini", at_most=5)
        >>> print(found)  # found.agent, found.risk_aversion, found.report, found.tried

    Args:
        env: A Gymnasium id or module:factory.
        agent: An agent with a risk aversion.
        measure: "gini" or "std", with `at_most`; "cvar_10" (the mean of the worst 10 %) or "mean", with `at_least`.
        at_most: The limit. A policy is accepted if its whole confidence interval is within it.
        at_least: The same from below.
        settings: Other settings of the agent.
        env_options: Options of the environment.
        risk_aversion: Lambdas to search between, as (low, high) or "low:high"; by default from 0 on, as far as needed.
        seeds: How many policies are trained for each lambda, or with which seeds; the best one by the objective counts.
        episodes: How long each run is trained; or
        timesteps: the same in environment steps.
        warm_budget: The part of that for the two runs of a lambda that begin with the policies at the ends of its
            bracket; 0 to train all of them from scratch.
        lambdas: How many are tried, at most.
        precision: Width of a bracket at which the search ends, relative to lambda.
        evaluation_episodes: Episodes that each trained policy is evaluated in.
        deterministic: Whether policies take their most likely actions there.
        out: Folder of the runs, by default runs/calibrate-ENV; the same call keeps what is finished there.
        on: "local" or "ray".
        address: Of a Ray cluster.
        engine: See `Agent`.
        progress: Whether to show progress.
    """
    options = dict(env_options or {})
    plan = CalibrationPlan(
        env=env,
        limit=Limit.of(measure, at_most, at_least),
        agent=agent_class(agent).name,
        settings=dict(settings or {}),
        env_options=options,
        bracket=None if risk_aversion is None else bracket_of(risk_aversion, "risk_aversion"),
        seeds=seeds_of(seeds),
        budget=budget_of(episodes, timesteps),
        warm_budget=warm_budget,
        most=lambdas,
        precision=precision,
        episodes=evaluation_episodes,
        deterministic=deterministic,
        engine=engine,
    )
    return run_calibration(plan, Place(Path(out or default_out("calibrate", env, options)), on, address, progress))
