"""`steadyrl frontier`."""

from __future__ import annotations

from collections.abc import Sequence
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
    logger_names,
    named,
    names_in,
    options_of,
    pairs_of,
)
from steadyrl.cli.failures import exit_with_failures, explain_resuming, paths_as_typed
from steadyrl.cli.page import write_page

if TYPE_CHECKING:
    from steadyrl.runs.frontier_plan import FrontierPlan

Ranges = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, named("RANGE", "--lambda")]


@dataclass(frozen=True)
class FrontierCommand:
    """Show what less risk costs: train with several risk aversions, and draw mean against risk.

    Finished runs and evaluations are kept and interrupted ones resumed when the same command is given again.

    Example: steadyrl frontier steadyrl/GuardedMaze-v0 --agents mg,mvo,reinforce --risk-aversion mg=0:2:5
    --risk-aversion mvo=0.001:0.1:5:log --seeds 5

    Lambdas chosen automatically: steadyrl frontier CartPole-v1 --auto
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, or module:factory for an environment of your own."""
    agents: Annotated[str, named("NAMES", "--agent")] = "mg,reinforce"
    """The methods, separated by commas; mg,reinforce by default. Those without a lambda are one point each."""
    risk_aversion: Ranges = ()
    """The lambdas: low:high:count, low:high:count:log, or a list such as 0,0.5,1; NAME=RANGE for one agent only. By
    default 0:2:5, and 0.001:1:4:log for methods that penalize a variance."""
    auto: Flag = False
    """Choose the lambdas: double until the risk stops falling, then fill the widest gaps."""
    lambdas: Count = 9
    """With --auto: how many lambdas for each agent, at most."""
    set: Pairs = ()
    """A setting of the agents, as name=value; may be given many times. Agents without it ignore it."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seeds: Count = 3
    """How many seeds, from 0 on."""
    episodes: PerhapsCount = None
    """How many episodes each run learns from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps each run learns from, in place of --episodes."""
    evaluation_episodes: Count = 200
    """How many episodes each trained policy is evaluated in; more give narrower intervals."""
    deterministic: Flag = False
    """Evaluate the most likely actions instead of drawing them."""
    engine: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where episodes come from, as for `steadyrl train`."""
    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """Where to train: local, a process for each core here, or ray, a cluster. Policies are evaluated here."""
    address: Annotated[str | None, named("ADDRESS")] = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    log: Annotated[str, named("NAMES")] = ""
    """Loggers of every run, separated by commas: tensorboard, wandb, mlflow or jsonl."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """Folder of the runs and results; by default runs/frontier-ENV."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    progress: Progress = True
    """Whether to show progress on standard error: a table in a terminal, else a line now and then; shown by default."""
    yes: Flag = False
    """Train without asking, also if each run is of more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command; status 1 if a run failed."""
        from steadyrl.envs.options import checked_options
        from steadyrl.runs.frontier import FILE, PICTURE, Place, run_frontier
        from steadyrl.runs.frontier_plan import default_out

        options = checked_options(self.env, options_of(self.env_set))
        plan = self._plan(options)
        out = self.out or default_out("frontier", self.env, options)
        confirm_budget(plan.budget, self.yes)
        place = Place(out, self.on, self.address, self.progress)
        with explain_resuming(), paths_as_typed(place.out, out):
            frontier, failures = run_frontier(plan, place)
        if frontier is not None:
            print(f"\n{frontier}\n")
            frontier.plot(place.out / PICTURE)
            print(f"Picture: {out / PICTURE}. Numbers: {out / FILE}.")
            write_page(place.out, out, [self.env], self.evaluation_episodes)
        exit_with_failures(failures)

    def _plan(self, options: dict[str, Any]) -> FrontierPlan:
        from steadyrl.agents import agent_class
        from steadyrl.runs.frontier_plan import plan_of
        from steadyrl.runs.sweep import budget_of, seeds_of

        names = [agent_class(name).name for name in names_in(self.agents)]
        return plan_of(
            self.env,
            settings_of(names, self.set),
            _ranges(self.risk_aversion),
            self.auto,
            env_options=options,
            seeds=seeds_of(self.seeds),
            budget=budget_of(self.episodes, self.timesteps),
            most=self.lambdas,
            episodes=self.evaluation_episodes,
            deterministic=self.deterministic,
            engine=self.engine,
            loggers=logger_names(self.log),
            checkpoint_seconds=self.checkpoint_every,
        )


def _ranges(texts: Sequence[str]) -> Any:
    """None, a range for all agents, or agent -> range."""
    if not texts:
        return None
    by_agent = [text for text in texts if "=" in text]
    if by_agent and len(by_agent) == len(texts):
        return pairs_of("--risk-aversion", tuple(texts))
    if len(texts) > 1:
        raise ValueError("--risk-aversion: give one range for all agents, or NAME=RANGE for each.")
    return texts[0]


def settings_of(agents: Sequence[str], texts: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Agent -> the settings that --set gives it, one value each."""
    from steadyrl.runs.sweep import choices_of_text, repeated

    if twice := repeated(agents):
        raise ValueError(f"agents: {twice[0]} is given twice: name each once.")
    choices = choices_of_text(agents, pairs_of("--set", texts))
    for of_agent in choices.values():
        for name, values in of_agent.items():
            if name == "risk_aversion":
                raise ValueError("--set risk_aversion: give it as --risk-aversion.")
            if len(values) > 1:
                raise ValueError(f"--set {name}: give one value; `steadyrl sweep` compares several.")
    return {agent: {name: values[0] for name, values in of_agent.items()} for agent, of_agent in choices.items()}
