"""The frontier of an environment: policies with different aversions to risk, trained in run folders and evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steadyrl.envs.finite import finite_model
from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.evaluation.frontier import Frontier, FrontierPoint, exact_points
from steadyrl.runs.final_evaluation import EPISODES, evaluate_all, read_evaluation
from steadyrl.runs.frontier_auto import next_aversion, unit
from steadyrl.runs.frontier_dial import dial_frontier, has_dial, refuse_training_options
from steadyrl.runs.frontier_plan import LAMBDAS, SEEDS, Aversions, FrontierPlan, default_out, plan_of
from steadyrl.runs.job import Job, command_line
from steadyrl.runs.risk_aversions import in_units_of_return
from steadyrl.runs.scheduler import Failure, train_all
from steadyrl.runs.sweep import budget_of, seeds_of
from steadyrl.training.run_folder import is_complete, versions

AGENTS_BY_DEFAULT = ("mg", "reinforce")
FILE, PICTURE = "frontier.json", "frontier.png"


class Place:
    """Where to train: here or on a cluster, and in which folder."""

    def __init__(self, out: Path, on: str = "local", address: str | None = None, progress: bool = True) -> None:
        self.out, self.on, self.address, self.progress = out.absolute(), on, address, progress

    def train(self, cells: Sequence[Job], episodes: int, deterministic: bool) -> list[Failure]:
        """Train and evaluate what is missing; returns what failed."""
        failures = train_all(cells, self.out, self.on, self.address, self.progress)
        return failures + evaluate_all(cells, self.out, episodes, deterministic, self.progress)


def run_frontier(plan: FrontierPlan, place: Place) -> tuple[Frontier | None, list[Failure]]:
    """Train and evaluate; returns the frontier, which is saved too, and what failed. None if there is no point."""
    env = resolve(plan.env, **plan.env_options)  # A mistake is found before anything is trained.
    model = finite_model(env)
    env.close()
    wanted: dict[str, tuple[float, ...]] = {agent: plan.aversions.get(agent, (0.0,)) for agent in plan.agents}
    tried: set[tuple[str, float]] = set()  # A lambda whose runs have all failed is not proposed for ever.
    points: list[FrontierPoint] = []
    failures: list[Failure] = []
    while wanted:
        cells = plan.cells(place.out, wanted)
        failures += place.train(cells, plan.episodes, plan.deterministic)
        points += [point for cell in cells if (point := point_of(cell, plan, place.out)) is not None]
        tried |= {(agent, aversion) for agent, aversions in wanted.items() for aversion in aversions}
        proposed = [(agent, aversion) for agent in plan.automatic for aversion in _next(agent, points, plan)]
        wanted = {agent: (aversion,) for agent, aversion in proposed if (agent, aversion) not in tried}
    if not points:
        return None, failures
    details = {
        "command": command_line(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": versions(),
        "settings": plan.settings(),
    }
    exact = exact_points(model.mdp) if model is not None else ()
    frontier = Frontier(_in_order(points, plan), plan.env, plan.env_options, exact, details)
    frontier.save(place.out / FILE)
    return frontier, failures


def _next(agent: str, points: Sequence[FrontierPoint], plan: FrontierPlan) -> list[float]:
    """The next lambda of an agent, if there is one."""
    mine = [point for point in points if point.agent == agent]
    neutral = [point for point in mine if point.risk_aversion == 0]
    if not neutral:  # All its runs failed.
        return []
    chosen = next_aversion(mine, plan.most, unit(in_units_of_return(agent, plan.agents[agent]), neutral[0]))
    return [] if chosen is None else [chosen]


def _in_order(points: Sequence[FrontierPoint], plan: FrontierPlan) -> tuple[FrontierPoint, ...]:
    order = list(plan.agents)
    return tuple(sorted(points, key=lambda point: (order.index(point.agent), point.risk_aversion or 0.0)))


def point_of(cell: Job, plan: FrontierPlan, out: Path) -> FrontierPoint | None:
    """The runs of a cell as a point; None if none of them is complete."""
    returns, folders = [], []
    for run in cell.runs:
        found = read_evaluation(run.folder, plan.episodes, plan.deterministic) if is_complete(run.folder) else None
        if found is not None:
            returns.append(found.returns)
            folders.append(run.folder.relative_to(out).as_posix())
    aversion = cell.runs[0].settings.get("risk_aversion")
    return FrontierPoint.of(cell.agent, aversion, returns, folders) if returns else None


def frontier(
    what: Any,
    env: EnvLike | None = None,
    *,
    agents: str | Sequence[str] | Mapping[str, Mapping[str, Any]] = AGENTS_BY_DEFAULT,
    risk_aversion: Aversions | Mapping[str, Aversions] | None = None,
    auto: bool = False,
    lambdas: int = LAMBDAS,
    seeds: int | list[int] = SEEDS,
    episodes: int | None = None,
    timesteps: int | None = None,
    env_options: Mapping[str, Any] | None = None,
    evaluation_episodes: int = EPISODES,
    deterministic: bool = False,
    out: str | Path | None = None,
    on: str = "local",
    address: str | None = None,
    engine: str = "auto",
    progress: bool = True,
) -> Frontier:
    """How much return less risk costs: train with several risk aversions, and compare mean and risk.

    Example:
        >>> maze = "steadyrl/GuardedMaze-v0"
        >>> found = frontier(maze, agents=["mg", "reinforce"], risk_aversion="0:2:5")
        >>> print(found)  # found.hull, found.plot("frontier.png"), found.save("frontier.json")

    With a trained agent whose risk aversion can be chosen afterwards, nothing is trained:
    `frontier(agent, env, risk_aversion=...)` evaluates `agent.at(lambda)`. Options of training are refused there.

    Args:
        what: A Gymnasium id or module:factory; or an agent with `risk_aversion_range` and `at(risk_aversion)`.
        env: With such an agent, the environment to play in; by default its own.
        agents: Names of agents, or a mapping from names to their settings. Those without lambda are one point each.
        risk_aversion: "low:high:count" or "low:high:count:log", or numbers; or a mapping from agents to these.
        auto: Choose the lambdas: doubled until the risk stops falling, then where gaps are widest.
        lambdas: How many, at most, for each agent with `auto`.
        seeds: How many, or which ones.
        episodes: How long each run is trained; or
        timesteps: the same in environment steps.
        env_options: Options of the environment.
        evaluation_episodes: Episodes that each trained policy is evaluated in.
        deterministic: Whether policies take their most likely actions there.
        out: Folder of the runs, by default runs/frontier-ENV; the same call keeps what is finished there.
        on: "local" or "ray".
        address: Of a Ray cluster.
        engine: See `Agent`.
        progress: Whether to show progress.
    """
    if has_dial(what):
        refuse_training_options(
            {
                "agents": agents != AGENTS_BY_DEFAULT,
                "auto": auto,
                "lambdas": lambdas != LAMBDAS,
                "seeds": seeds != SEEDS,
                "episodes": episodes is not None,
                "timesteps": timesteps is not None,
                "env_options": bool(env_options),
                "out": out is not None,
                "on": on != "local",
                "address": address is not None,
                "engine": engine != "auto",
            }
        )
        return dial_frontier(what, env, risk_aversion, evaluation_episodes, deterministic)
    names = [name.strip() for name in agents.split(",")] if isinstance(agents, str) else agents
    options = dict(env_options or {})
    plan = plan_of(
        what,
        names,
        risk_aversion,
        auto,
        env_options=options,
        seeds=seeds_of(seeds),
        budget=budget_of(episodes, timesteps),
        most=lambdas,
        episodes=evaluation_episodes,
        deterministic=deterministic,
        engine=engine,
    )
    place = Place(Path(out or default_out("frontier", what, options)), on, address, progress)
    found, failures = run_frontier(plan, place)
    for failure in failures:
        warnings.warn(f"left out: {failure}", UserWarning, stacklevel=2)
    if found is None:
        raise ValueError(f"no run could be trained: {failures[0]}")
    return found
