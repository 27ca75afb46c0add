"""`steadyrl calibrate`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steadyrl.cli.arguments import (
    Count,
    Flag,
    Pairs,
    PerhapsCount,
    Progress,
    confirm_budget,
    named,
    options_of,
    typed_env,
)
from steadyrl.cli.failures import explain_resuming, paths_as_typed
from steadyrl.cli.frontier import settings_of
from steadyrl.cli.page import write_page

if TYPE_CHECKING:
    from steadyrl.runs.calibration_trainer import CalibrationPlan
    from steadyrl.runs.limit_search import Limit

Bound = Annotated[float | None, named("NUMBER")]


@dataclass(frozen=True)
class Calibrate:
    """Find the risk aversion for a limit of risk, and train the best policy within it.

    A policy is accepted if its whole confidence interval is within the limit. Finished runs are kept and interrupted
    ones resumed when the same command is given again.

    Example: steadyrl calibrate steadyrl/GuardedMaze-v0 --agent mg --gini-at-most 5

    The least risk with a mean of at least 9.5: steadyrl calibrate steadyrl/GuardedMaze-v0 --mean-at-least 9.5
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, or module:factory for an environment of your own."""
    agent: Annotated[str, tyro.conf.arg(metavar="NAME")] = "mg"
    """The method: one with a risk aversion, such as mg or mvo."""
    gini_at_most: Bound = None
    """The limit of the Gini deviation, under which the mean is to be high."""
    std_at_most: Bound = None
    """The same of the standard deviation."""
    cvar_10_at_least: Bound = None
    """The same of CVaR 10 %, the mean of the worst tenth of the returns, from below."""
    mean_at_least: Bound = None
    """The limit of the mean, above which the Gini deviation is to be low."""
    risk_aversion: Annotated[str | None, named("LOW:HIGH", "--lambda")] = None
    """Lambdas to search between; by default from 0 on, as far as needed."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seeds: Count = 1
    """How many policies to train for each lambda; the best one by the objective counts."""
    episodes: PerhapsCount = None
    """How many episodes each run learns from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps each run learns from, in place of --episodes."""
    warm_budget: Annotated[float, tyro.conf.arg(metavar="PART")] = 0.5
    """The part of that for the two runs of a lambda that begin with the policies at the ends of its bracket; 0 to train
    all of them from scratch."""
    lambdas: Count = 10
    """How many lambdas to try, at most."""
    precision: Annotated[float, tyro.conf.arg(metavar="PART")] = 0.1
    """Width of a bracket at which the search ends, relative to lambda."""
    evaluation_episodes: Count = 500
    """How many episodes each trained policy is evaluated in; more give narrower intervals."""
    deterministic: Flag = False
    """Evaluate the most likely actions instead of drawing them."""
    engine: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where episodes come from, as for `steadyrl train`."""
    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """Where to train: local, a process for each core here, or ray, a cluster. Policies are evaluated here."""
    address: Annotated[str | None, named("ADDRESS")] = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """Folder of the runs and results; by default runs/calibrate-ENV."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    progress: Progress = True
    """Whether to show progress on standard error: a table in a terminal, else a line now and then; shown by default."""
    yes: Flag = False
    """Train without asking, also if each run is of more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command; status 1 if none of the lambdas tried reaches the limit."""
        from steadyrl.envs.description import names_code
        from steadyrl.envs.options import checked_options
        from steadyrl.runs.calibration import FILE, PICTURE, run_calibration
        from steadyrl.runs.frontier import Place
        from steadyrl.runs.frontier_plan import default_out

        options = checked_options(self.env, options_of(self.env_set))
        plan = self._plan(options)
        out = self.out or default_out("calibrate", self.env, options)
        confirm_budget(plan.budget, self.yes)
        place = Place(out, self.on, self.address, self.progress)
        with explain_resuming(), paths_as_typed(place.out, out):
            calibration = run_calibration(plan, place)
        print(f"\n{calibration}\n")
        calibration.frontier.plot(place.out / PICTURE)
        print(f"Picture: {out / PICTURE}. Numbers: {out / FILE}.")
        write_page(place.out, out, [self.env], self.evaluation_episodes)
        if calibration.folder is None:
            sys.exit(1)
        # A file does not choose code to run, so an environment of the user's own is named again.
        named_again = f" {typed_env(self.env, options)}" if names_code(self.env) else ""
        print(f"The policy: steadyrl evaluate {shlex.quote(str(out / calibration.folder))}{named_again}")

    def _plan(self, options: dict[str, Any]) -> CalibrationPlan:
        from steadyrl.agents import agent_class
        from steadyrl.runs.calibration_trainer import CalibrationPlan
        from steadyrl.runs.risk_aversions import bracket_of
        from steadyrl.runs.sweep import budget_of, seeds_of

        agent = agent_class(self.agent).name
        bracket = None if self.risk_aversion is None else bracket_of(self.risk_aversion, "--risk-aversion")
        return CalibrationPlan(
            env=self.env,
            limit=self._limit(),
            agent=agent,
            settings=settings_of([agent], self.set)[agent],
            env_options=options,
            bracket=bracket,
            seeds=seeds_of(self.seeds),
            budget=budget_of(self.episodes, self.timesteps),
            warm_budget=self.warm_budget,
            most=self.lambdas,
            precision=self.precision,
            episodes=self.evaluation_episodes,
            deterministic=self.deterministic,
            engine=self.engine,
            checkpoint_seconds=self.checkpoint_every,
        )

    def _limit(self) -> Limit:
        from steadyrl.runs.limit_search import Limit

        at_most = {"gini": self.gini_at_most, "std": self.std_at_most}
        at_least = {"cvar_10": self.cvar_10_at_least, "mean": self.mean_at_least}
        given = [name for name, bound in {**at_most, **at_least}.items() if bound is not None]
        if len(given) != 1:
            options = "--gini-at-most, --std-at-most, --cvar-10-at-least or --mean-at-least"
            raise ValueError(f"calibrate: give {'a' if not given else 'one'} limit: {options}.")
        return Limit.of(given[0], at_most.get(given[0]), at_least.get(given[0]))
