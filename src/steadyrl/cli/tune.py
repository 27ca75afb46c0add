"""`steadyrl tune`."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from steadyrl.cli.arguments import (
    Count,
    Flag,
    Pairs,
    PerhapsCount,
    Progress,
    confirm_budget,
    named,
    names_in,
    options_of,
    pairs_of,
)
from steadyrl.cli.failures import paths_as_typed
from steadyrl.cli.page import Page, write_page

if TYPE_CHECKING:
    from steadyrl.runs.tuning_plan import TunePlan
    from steadyrl.runs.tuning_results import Tuning

BEST, TABLE, PICTURE = "best.toml", "tuning.json", "tuning.png"


@dataclass(frozen=True)
class TuneCommand:
    """Search for good settings of an agent: trials with several seeds each, here or on a cluster. Needs Optuna.

    What is maximized is a lower confidence bound of mean - risk_aversion * measure of the returns. Trials below the
    median after the same number of seeds are pruned. When the same command is given again, a study that was interrupted
    continues.

    Example: steadyrl tune CartPole-v1 --agent mg --trials 20 --seeds 2 --timesteps 5e4

    Then: steadyrl train CartPole-v1 --settings runs/tune-CartPole-v1-mg/best.toml
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as CartPole-v1, or module:factory for an environment of your own."""
    agent: Annotated[str, tyro.conf.arg(metavar="NAME")] = "mg"
    """The method; `steadyrl agents` describes each of them."""
    trials: Count = 50
    """How many trials, those of earlier calls of the same command included."""
    seeds: Count = 3
    """How many seeds for each trial, from 0 on."""
    episodes: PerhapsCount = None
    """How many episodes each run learns from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps each run learns from, in place of --episodes."""
    set: Pairs = ()
    """A setting that is not searched, as name=value; may be given many times."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    search: Annotated[
        tuple[str, ...], tyro.conf.UseAppendAction, named("NAME=LOW:HIGH[:log] | NAME=A,B | FILE.toml")
    ] = ()
    """A range in place of the default one, or of a further setting; may be given many times, or a TOML file of them."""
    only: Flag = False
    """Search the settings of --search alone."""
    risk_aversion: Annotated[float | None, named("LAMBDA")] = None
    """The weight of the risk in the objective; by default the agent's risk_aversion, 0 for agents without."""
    measure: Annotated[str | None, named("NAME")] = None
    """The risk in the objective, such as gini, std or cvar:0.2; by default what the agent penalizes."""
    objectives: Annotated[str, named("NAMES")] = ""
    """Several measures, such as mean,gini, each an objective: the result is the trials that none dominates."""
    evaluation_episodes: Count = 200
    """Episodes that each trained policy is evaluated in."""
    parallel: PerhapsCount = None
    """Trials at a time; by default one for each core, or 8 on a cluster."""
    seed: Count = 0
    """Seed of the search."""
    engine: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where episodes come from, as for `steadyrl train`."""
    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """Where to train: local, a process for each core here, or ray, a cluster."""
    address: Annotated[str | None, named("ADDRESS")] = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """Folder of the study and its runs; by default runs/tune-ENV-AGENT."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    progress: Progress = True
    """Whether to show progress on standard error; shown by default."""
    page: Page = True
    """Whether to write a page about all runs; written by default."""
    yes: Flag = False
    """Train without asking, also if each run is of more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command; status 1 if no trial could be trained."""
        from steadyrl.runs.frontier import Place
        from steadyrl.runs.tuning import check_arguments, import_optuna, run_tuning, tuning_out

        import_optuna()
        plan = self._plan()
        confirm_budget(plan.budget, self.yes)
        out = self.out or tuning_out(plan)
        place = Place(out, self.on, self.address, self.progress)
        check_arguments(place, self.trials, self.parallel)
        if self.progress:
            print(
                f"Objective: {plan.objective_text()}. Search: {'  '.join(map(str, plan.space.values()))}",
                file=sys.stderr,
            )
        try:
            with paths_as_typed(place.out, out):
                found = run_tuning(plan, place, self.trials, self.parallel)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("The same command continues the study.") from None
        self._show(found, place.out, out)

    def _plan(self) -> TunePlan:
        from steadyrl.agents import agent_class
        from steadyrl.envs.options import checked_options
        from steadyrl.runs.search_space import space_of_texts
        from steadyrl.runs.sweep import budget_of, choices_of_text, seeds_of
        from steadyrl.runs.tuning_plan import plan_of

        agent = agent_class(self.agent).name
        choices = choices_of_text([agent], pairs_of("--set", self.set))[agent]
        for name, values in choices.items():
            if len(values) > 1:
                raise ValueError(f"--set {name}: give one value, or --search {name}=... to search several.")
        return plan_of(
            self.env,
            agent,
            {name: values[0] for name, values in choices.items()},
            space_of_texts(agent, self.search),
            only=self.only,
            measure=self.measure,
            risk_aversion=self.risk_aversion,
            objectives=names_in(self.objectives),
            env_options=checked_options(self.env, options_of(self.env_set)),
            engine=self.engine,
            seeds=seeds_of(self.seeds),
            budget=budget_of(self.episodes, self.timesteps),
            episodes=self.evaluation_episodes,
            sampler_seed=self.seed,
            checkpoint_seconds=self.checkpoint_every,
        )

    def _show(self, found: Tuning, folder: Path, typed: Path) -> None:
        """Print the table, and write the settings, the picture and the page."""
        from steadyrl.base.files import write_atomic

        write_atomic(folder / TABLE, json.dumps(found.to_dict(), indent=1, default=list).encode())
        for trial in found.failed:
            print(f"Trial {trial.number} failed: {trial.reason}", file=sys.stderr)
        if not found.complete:
            print("steadyrl: no trial could be trained to its end.", file=sys.stderr)
            sys.exit(1)
        print(f"\n{found}\n")
        if found.plan.objectives:
            self._show_frontier(found, folder, typed)
        else:
            from steadyrl.runs.tuning_figure import draw_tuning

            found.save(folder / BEST)
            draw_tuning(found, folder / PICTURE)
            print(f"Picture: {typed / PICTURE}. All trials: {typed / TABLE}.")
        if self.page:
            write_page(folder, typed, [self.env], self.evaluation_episodes)
        if not found.plan.objectives:
            best = shlex.quote(str(typed / BEST))
            print(f"Best settings: {typed / BEST}. To train with them: steadyrl train {self.env} --settings {best}")

    def _show_frontier(self, found: Tuning, folder: Path, typed: Path) -> None:
        from steadyrl.runs.frontier import FILE
        from steadyrl.runs.frontier import PICTURE as FRONTIER_PICTURE

        for trial in found.pareto:
            found.save(folder / f"trial-{trial.number}.toml", trial)
        frontier = found.frontier(folder)
        frontier.save(folder / FILE)
        frontier.plot(folder / FRONTIER_PICTURE)
        chosen = found.pareto[0].number
        print(f"Picture: {typed / FRONTIER_PICTURE}. All trials: {typed / TABLE}.")
        print(
            f"Settings of the trials marked *: {typed}/trial-N.toml. To train with them: "
            f"steadyrl train {self.env} --settings {shlex.quote(str(typed / f'trial-{chosen}.toml'))}"
        )
