"""`steadyrl train`."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
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
    options_of,
    pairs_of,
    typed_env,
    workers_of,
)
from steadyrl.cli.failures import paths_as_typed
from steadyrl.cli.page import PAGE, Page, write_page

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent
    from steadyrl.training.loop import Listener


@dataclass(frozen=True)
class Train:
    """Train an agent and write a run folder: config, metrics, checkpoint.

    A run that was interrupted is resumed from its last checkpoint when the same command is given again.

    Example: steadyrl train steadyrl/GuardedMaze-v0 --agent mg --set risk_aversion=1.4 --episodes 50000
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, gymnax:ID, or module:factory for an environment of your own."""
    agent: Annotated[str, tyro.conf.arg(metavar="NAME")] = "mg"
    """The method, such as mg, mvo or reinforce; `steadyrl agents` describes each of them."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times. `steadyrl agents NAME` lists them."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seed: Count = 0
    """Seed of everything random in the run."""
    episodes: PerhapsCount = None
    """How many episodes to learn from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps to learn from, in place of --episodes."""
    engine: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where episodes come from, such as compiled, jax or gymnasium; auto takes what fits, and EnvPool only if asked."""
    workers: Annotated[str, tyro.conf.arg(metavar="N|auto")] = "0"
    """How many processes play episodes, for environments that are slow in Python; auto measures. Same results."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """Run folder; by default runs/ENV-AGENT-seedN, with the settings that are given in its name."""
    log: Annotated[str, named("NAMES")] = ""
    """Additional loggers, separated by commas: tensorboard, wandb, mlflow or jsonl."""
    tensorboard: Flag = False
    """The same as --log tensorboard."""
    progress: Progress = True
    """Whether to show progress on standard error: a bar in a terminal, else a line now and then; shown by default."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    page: Page = True
    """Whether to evaluate the agent and write a page about the run; written by default."""
    yes: Flag = False
    """Train without asking, also for more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command."""
        from functools import partial

        from steadyrl.agents import agent_class
        from steadyrl.agents.networks.description import with_network_described
        from steadyrl.base.settings import canonical
        from steadyrl.envs.description import names_code
        from steadyrl.envs.options import checked_options
        from steadyrl.envs.resolve import resolve
        from steadyrl.envs.source import Source
        from steadyrl.runs.job import Job, RunSpec, command_line, run_job
        from steadyrl.runs.sweep import budget_of, folder_name, short_name
        from steadyrl.training.loggers import logger_class
        from steadyrl.training.loggers.tensorboard import FOLDER
        from steadyrl.training.progress import TrainingProgress
        from steadyrl.training.run import Plan

        kind = agent_class(self.agent)
        here = Path.cwd()  # An environment may change it.
        given, options = pairs_of("--set", self.set), checked_options(self.env, options_of(self.env_set))
        plan = Plan(
            budget_of(self.episodes, self.timesteps),
            checkpoint_seconds=self.checkpoint_every,
            command=command_line(),
        )
        loggers = logger_names(self.log, self.tensorboard)
        for logger in loggers:
            logger_class(logger)  # A package that is missing is reported before there is a folder.
        spaces = Source.of(partial(resolve, self.env, **options)).spaces
        given = with_network_described(given, spaces[0])
        chosen = kind.chosen(given, *spaces)
        settings = kind.settings_class(chosen).of_text(chosen)
        values = {name: getattr(settings, name) for name in canonical(chosen, (type(settings),), warn=False)}
        named_by = {name: values[name] for name in canonical(given, (type(settings),), warn=False)}
        name = folder_name(f"{short_name(self.env)}-{kind.name}", {**options, **named_by})
        out = self.out or Path("runs") / f"{name}-seed{self.seed}"
        run = RunSpec(self.seed, here / out, values, name)
        job = Job(self.env, kind.name, (run,), plan, options, self.engine, loggers, workers_of(self.workers))
        confirm_budget(plan.budget, self.yes)
        with ExitStack() as stack, paths_as_typed(here / out, out):

            def listeners(agents: Sequence[Any], runs: Any) -> list[Listener]:
                done = getattr(agents[0], plan.unit)
                if done:
                    print(f"Resuming in {out} after {agents[0].episodes:,} episodes.", file=sys.stderr)
                if self.workers == "auto":
                    number = f"{agents[0].workers} play episodes" if agents[0].workers else "none, they would not pay"
                    print(f"Workers: {number}.", file=sys.stderr)
                if not self.progress:
                    return []
                bar = TrainingProgress(kind.name, plan.unit, plan.total, agents, done, lines=True)
                return [stack.enter_context(bar)]

            trained = run_job(job, listeners)
            for agent in trained:
                agent.check_trained()
        print("\n".join(map(_summary, trained)) or "This run is complete already.")
        if trained and (here / out / FOLDER).is_dir():
            print(_how_to_view(out / FOLDER))
        if self.page and (trained or not (here / out / PAGE).exists()):
            write_page(here / out, out, [self.env])
        # A file does not choose code to run, so an environment of the user's own is named again.
        named_again = f" {typed_env(self.env, options)}" if names_code(self.env) else ""
        ends = values.get("risk_aversion")
        at = f" --at {sum(ends) / 2:g}" if isinstance(ends, tuple) else ""
        print(f"Saved in {out}. Its risk: steadyrl evaluate {shlex.quote(str(out))}{at}{named_again}")


def _how_to_view(events: Path) -> str:
    """One line on TensorBoard, whose command is no part of the package that writes its files."""
    command = f"tensorboard --logdir {shlex.quote(str(events))}"
    if shutil.which("tensorboard") is None:
        return f"Events: {command} (first: pip install tensorboard)"
    return f"Events: {command}"


def _summary(agent: Agent) -> str:
    last = agent.history[-1] if agent.history else {}
    rates = {name: name for name in last if name.endswith("_rate")}
    shown = {"return": "return", "undiscounted_gini_deviation": "GD", **rates}
    values = ", ".join(f"{title} {last[name]:.3g}" for name, title in shown.items() if name in last)
    return f"{agent.name} after {agent.episodes:,} episodes ({agent.timesteps:,} steps): {values}"
