"""A limit instead of a lambda: train policies in run folders until the best one within the limit is found."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent, agent_class, load
from steadyrl.base.files import write_atomic
from steadyrl.envs.finite import finite_model
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation.frontier import MEASURES, WIDTH, ExactPoint, Frontier, FrontierPoint, exact_points, short
from steadyrl.evaluation.risk_report import RiskReport, aligned
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.frontier import Place
from steadyrl.runs.frontier_auto import unit
from steadyrl.runs.frontier_plan import default_out
from steadyrl.runs.job import Job, command_line
from steadyrl.runs.limit_search import MOST, PRECISION, TITLES, Limit, Search
from steadyrl.runs.risk_aversions import has_risk_aversion, in_units_of_return
from steadyrl.runs.sweep import SWEEP_EPISODES_PER_RECORD, budget_of, folder_name, seeds_of, short_name
from steadyrl.training.checkpoint_timer import SECONDS
from steadyrl.training.run import Plan
from steadyrl.training.run_files import CHECKPOINT
from steadyrl.training.run_folder import versions
from steadyrl.training.warm_start import place_start

EVALUATION_EPISODES = 500
"""By default: a policy is accepted by its interval, which should be narrow."""
HIGH = 2.0
"""The upper end of the bracket by default, times the `unit` of the agent's risk."""
FILE, PICTURE = "calibration.json", "calibration.png"


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
    warm_budget: float = 1.0
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
        AGENTS[self.agent].settings_of({**self.settings, "risk_aversion": self.bracket[0] if self.bracket else 0.0})


@dataclass(frozen=True)
class Calibration:
    """The policy that was found, and all that was tried; `str(calibration)` is a table."""

    limit: Limit
    agent: Agent | None
    """The trained agent; None if no lambda reaches the limit."""
    risk_aversion: float | None
    """Its lambda."""
    report: RiskReport | None
    """Its evaluation, on which the decision was made."""
    tried: tuple[FrontierPoint, ...]
    """In order; with several seeds, the best policy of each lambda."""
    reason: str
    """Why the search ended."""
    frontier: Frontier
    """The same points, to be drawn."""

    @property
    def found(self) -> bool:
        """Whether a policy meets the limit."""
        return self.agent is not None

    def __str__(self) -> str:
        rows = [["", "lambda", *(TITLES[name] for name in MEASURES), "limit"]]
        for point in sorted(self.tried, key=lambda point: point.risk_aversion or 0.0):
            mark = "*" if self.found and point.risk_aversion == self.risk_aversion else ""
            rows.append([mark, f"{point.risk_aversion:.4g}", *self._cells(point), _answer(self.limit.met(point))])
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
        return {"risk_aversion": self.risk_aversion, "reason": self.reason, **self.frontier.to_dict()}


def _answer(met: bool) -> str:
    return "met" if met else "not met"


class _Trainer:
    """Trains and evaluates a policy for a lambda, in a run folder; a `Train` of the search."""

    def __init__(self, plan: CalibrationPlan, place: Place) -> None:
        self.plan, self.place = plan, place
        self.cells: dict[float, Job] = {}
        self.folders: dict[float, Path] = {}
        """Lambda -> the run folder of its best seed."""

    def __call__(self, aversion: float, nearest: float | None) -> FrontierPoint:
        plan, place = self.plan, self.place
        cell = self._cell(aversion, nearest if plan.warm_budget else None)
        self.cells[aversion] = cell
        if failures := place.train([cell], plan.episodes, plan.deterministic):
            raise ValueError(f"lambda {aversion:g}: {failures[0]} The same command tries again.")
        points = [self._point(aversion, folder) for folder in cell.folders]
        meeting = [point for point in points if plan.limit.met(point)]
        best = max(meeting, key=plan.limit.merit) if meeting else min(points, key=plan.limit.excess)
        self.folders[aversion] = place.out / best.runs[0]
        measured = getattr(best, plan.limit.measure)
        interval = f"{short(measured.value)} [{short(measured.low)}, {short(measured.high)}]"
        answer = _answer(plan.limit.met(best))
        print(f"lambda {aversion:g}: mean {short(best.mean.value)}, {TITLES[plan.limit.measure]} {interval}: {answer}.")
        return best

    def _cell(self, aversion: float, nearest: float | None) -> Job:
        """The runs for a lambda; those that begin with trained policies have a start in their folder."""
        plan = self.plan
        ((unit_of_budget, total),) = plan.budget.items()
        budget = total if nearest is None else max(1, round(plan.warm_budget * total))
        settings = {**plan.settings, "risk_aversion": aversion}
        began = {} if nearest is None else {"from": nearest}
        place = folder_name(short_name(plan.env), plan.env_options)
        method = folder_name(plan.agent, {**settings, **began}, ("risk_aversion", "from"))
        cell = Job.cell(
            env=plan.env,
            env_options=plan.env_options,
            agent=plan.agent,
            settings=settings,
            seeds=plan.seeds,
            folder=self.place.out / place / method,
            title=f"{place} {method}",
            engine=plan.engine,
            plan=Plan(
                {unit_of_budget: budget},
                episodes_per_record=SWEEP_EPISODES_PER_RECORD,
                checkpoint_seconds=plan.checkpoint_seconds,
                command=command_line(),
            ),
        )
        if nearest is not None:
            for folder, origin in zip(cell.folders, self.cells[nearest].folders, strict=True):
                place_start(folder, origin / CHECKPOINT)
        return cell

    def _point(self, aversion: float, folder: Path) -> FrontierPoint:
        report = self.report(folder)
        measures = {name: getattr(report, name) for name in MEASURES}
        run = folder.relative_to(self.place.out).as_posix()
        return FrontierPoint(self.plan.agent, aversion, **measures, seeds=1, episodes=report.episodes, runs=(run,))

    def report(self, folder: Path) -> RiskReport:
        """The evaluation of a run."""
        found = read_evaluation(folder, self.plan.episodes, self.plan.deterministic)
        assert found is not None, "it was just evaluated"
        return found.report()


def run_calibration(plan: CalibrationPlan, place: Place) -> Calibration:
    """Search; what was tried is saved in the folder, which the same plan resumes from."""
    env = resolve(plan.env, **plan.env_options)
    model = finite_model(env)
    env.close()
    exact = exact_points(model.mdp) if model is not None else ()
    refuse_impossible(plan.limit, exact)
    trainer = _Trainer(plan, place)
    search = Search(trainer, plan.limit, plan.most, plan.precision)
    if plan.bracket is not None:
        search.doublings = 0
        search.run(*plan.bracket)
    else:
        search.run(0.0, lambda neutral: HIGH * unit(in_units_of_return(plan.agent, plan.settings), neutral))
    calibration = _result(plan, search, trainer, exact)
    write_atomic(place.out / FILE, json.dumps(calibration.to_dict(), indent=1).encode())
    return calibration


def _result(plan: CalibrationPlan, search: Search, trainer: _Trainer, exact: tuple[ExactPoint, ...]) -> Calibration:
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
    risk_aversion: tuple[float, float] | None = None,
    seeds: int | list[int] = 1,
    episodes: int | None = None,
    timesteps: int | None = None,
    warm_budget: float = 1.0,
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
        risk_aversion: Lambdas to search between; by default from 0 on, as far as needed.
        seeds: How many policies are trained for each lambda, or with which seeds; the best one counts.
        episodes: How long each run is trained; or
        timesteps: the same in environment steps.
        warm_budget: The part of that for runs that begin with the policy of the nearest lambda; 0 to have none.
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
        bracket=risk_aversion,
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
