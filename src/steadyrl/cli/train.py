"""`steadyrl train`."""

from __future__ import annotations

import dataclasses
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
    from steadyrl.cli.resume_from import RecordedRun
    from steadyrl.runs.job import Job
    from steadyrl.training.loop import Listener
    from steadyrl.training.run import Plan


AGENT, SEED, ENGINE = "mg", 0, "auto"
"""Defaults of a new run. Those of the options are None: a value that is given must not contradict a file or a run."""
SCORES = ("mean", "mean_gini")
"""What early stopping goes by."""


@dataclass(frozen=True)
class Train:
    """Train an agent and write a run folder: config, metrics, checkpoint.

    A run that was interrupted is resumed from its last checkpoint when the same command is given again. One that is
    complete is extended to a larger budget with --resume-from.

    Example: steadyrl train steadyrl/GuardedMaze-v0 --agent mg --set risk_aversion=1.4 --episodes 50000
    """

    env: Annotated[str | None, tyro.conf.Positional, named("ENV")] = None
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, gymnax:ID, or module:factory for an environment of your own."""
    agent: Annotated[str | None, named("NAME")] = None
    """The method, such as mg, mvo or reinforce, by default mg; `steadyrl agents` describes each of them."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times. `steadyrl agents NAME` lists them."""
    settings: Annotated[Path | None, named("FILE.toml")] = None
    """A file with the agent and its settings, such as `steadyrl tune` writes; --set changes single ones."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seed: PerhapsCount = None
    """Seed of everything random in the run, by default 0."""
    episodes: PerhapsCount = None
    """How many episodes to learn from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps to learn from, in place of --episodes."""
    engine: Annotated[str | None, named("NAME")] = None
    """Where episodes come from, such as compiled, jax or gymnasium; by default auto: what fits, without EnvPool."""
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
    evaluate_every: PerhapsCount = None
    """Evaluate the policy after each so many training episodes, with the next update, in episodes of its own."""
    evaluation_episodes: Count = 50
    """How many episodes to play in each of these evaluations."""
    patience: PerhapsCount = None
    """Stop early when the score of the evaluations has not improved in so many of them; needs --evaluate-every."""
    min_improvement: Annotated[float, tyro.conf.arg(metavar="X")] = 0.0
    """With --patience: a score counts as an improvement if it is higher by more than this."""
    stop_at: Annotated[float | None, named("SCORE")] = None
    """Stop early when an evaluation has this score; needs --evaluate-every."""
    score: Annotated[str, tyro.conf.arg(metavar="NAME")] = "mean"
    """The score: mean, the mean return; or mean_gini, less the agent's risk_aversion times the Gini deviation."""
    resume_from: Annotated[Path | None, named("FOLDER")] = None
    """Extend the run in this folder to more --episodes or --timesteps; all else is that of the run."""
    keep_replay_buffer: Flag = False
    """Save the replay buffer at the end too, without which runs of DQN and TD3 cannot be extended later."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    page: Page = True
    """Whether to evaluate the agent and write a page about the run; written by default."""
    yes: Flag = False
    """Train without asking, also for more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.cli.resume_from import RecordedRun
        from steadyrl.envs.description import names_code
        from steadyrl.runs.job import run_job
        from steadyrl.training.loggers import logger_class
        from steadyrl.training.loggers.tensorboard import FOLDER
        from steadyrl.training.progress import TrainingProgress
        from steadyrl.training.run_files import CONFIG
        from steadyrl.training.run_folder import STOPPED_EARLY, read_config

        here = Path.cwd()  # An environment may change it.
        loggers = logger_names(self.log, self.tensorboard)
        for logger in loggers:
            logger_class(logger)  # A package that is missing is reported before there is a folder.
        recorded = RecordedRun.read(self.resume_from, self.env) if self.resume_from is not None else None
        job, out = self._extension(recorded, loggers) if recorded is not None else self._new_run(loggers)
        plan, env, options = job.plan, job.env, job.env_options
        job = dataclasses.replace(job, runs=(job.runs[0]._replace(folder=here / out),))
        confirm_budget(plan.budget, self.yes)
        with ExitStack() as stack, paths_as_typed(here / out, out):

            def listeners(agents: Sequence[Any], runs: Any) -> list[Listener]:
                if recorded is not None:  # Nothing refuses the extension any more.
                    recorded.announce(plan.budget)
                done = getattr(agents[0], plan.unit)
                if done:
                    print(f"Resuming in {out} after {agents[0].episodes:,} episodes.", file=sys.stderr)
                if self.workers == "auto":
                    number = f"{agents[0].workers} play episodes" if agents[0].workers else "none, they would not pay"
                    print(f"Workers: {number}.", file=sys.stderr)
                if not self.progress:
                    return []
                bar = TrainingProgress(job.agent, plan.unit, plan.total, agents, done, lines=True)
                return [stack.enter_context(bar)]

            trained = run_job(job, listeners)
            for agent in trained:
                agent.check_trained()
        print("\n".join(map(_summary, trained)) or "This run is complete already.")
        stopped = read_config(here / out).get(STOPPED_EARLY) if (here / out / CONFIG).is_file() else None
        if stopped:
            print(f"Stopped early after {stopped['episodes']:,} episodes: {stopped['reason']}.")
        if trained and (here / out / FOLDER).is_dir():
            print(_how_to_view(out / FOLDER))
        if self.page and (trained or not (here / out / PAGE).exists()):
            write_page(here / out, out, [env])
        # A file does not choose code to run, so an environment of the user's own is named again.
        named_again = f" {typed_env(env, options)}" if names_code(env) else ""
        ends = job.runs[0].settings.get("risk_aversion")
        at = f" --at {sum(ends) / 2:g}" if isinstance(ends, tuple | list) else ""
        print(f"Saved in {out}. Its risk: steadyrl evaluate {shlex.quote(str(out))}{at}{named_again}")

    def _new_run(self, loggers: tuple[str, ...]) -> tuple[Job, Path]:
        """The run that the options describe, and its folder as it is typed."""
        from functools import partial

        from steadyrl.agents import agent_class
        from steadyrl.agents.networks.description import with_network_described
        from steadyrl.base.settings import canonical
        from steadyrl.envs.options import checked_options
        from steadyrl.envs.resolve import resolve
        from steadyrl.envs.source import Source
        from steadyrl.runs.job import Job, RunSpec
        from steadyrl.runs.sweep import folder_name, short_name

        if self.env is None:
            raise ValueError("train: name an environment, such as steadyrl/GuardedMaze-v0, or --resume-from a run.")
        agent, in_file = self._settings_file()
        kind = agent_class(agent)
        options = checked_options(self.env, options_of(self.env_set))
        given = {**in_file, **pairs_of("--set", self.set)}
        self._plan()  # Mistakes in it are found before the environment is made.
        spaces = Source.of(partial(resolve, self.env, **options)).spaces
        given = with_network_described(given, spaces[0])
        chosen = kind.chosen(given, *spaces)
        settings = kind.settings_class(chosen).of_text(chosen)
        evaluating = self._evaluations(kind.name, getattr(settings, "risk_aversion", None))
        plan = dataclasses.replace(self._plan(), **evaluating)
        values = {name: getattr(settings, name) for name in canonical(chosen, (type(settings),), warn=False)}
        named_by = {name: values[name] for name in canonical(given, (type(settings),), warn=False)}
        name = folder_name(f"{short_name(self.env)}-{kind.name}", {**options, **named_by})
        seed = SEED if self.seed is None else self.seed
        engine = ENGINE if self.engine is None else self.engine
        out = self.out or Path("runs") / f"{name}-seed{seed}"
        run = RunSpec(seed, out, values, name)
        return Job(self.env, kind.name, (run,), plan, options, engine, loggers, workers_of(self.workers)), out

    def _settings_file(self) -> tuple[str, dict[str, str]]:
        """The agent, and the settings of the file as they would be typed."""
        import json

        from steadyrl.runs.toml_file import read_toml
        from steadyrl.runs.tuning_results import settings_in

        if self.settings is None:
            return self.agent or AGENT, {}
        try:
            agent, values = settings_in(read_toml(self.settings))
        except ValueError as error:
            raise ValueError(f"--settings {self.settings}: {error}") from None
        if agent is not None and self.agent not in (None, agent):
            raise ValueError(
                f"--agent {self.agent}: {self.settings} has settings of {agent}. Leave out one of the two."
            )
        return agent or self.agent or AGENT, {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()
        }

    def _extension(self, recorded: RecordedRun, loggers: tuple[str, ...]) -> tuple[Job, Path]:
        """The run in the folder of --resume-from, with the budget of the command."""
        from steadyrl.runs.job import Job, RunSpec
        from steadyrl.training.extension import kept_replay_buffer

        folder, config = recorded.folder, recorded.config
        recorded.refuse(
            {
                "--agent": self.agent not in (None, config["agent"]),
                "--set": bool(self.set),
                "--settings": self.settings is not None,
                "--env-set": bool(self.env_set),
                "--seed": self.seed not in (None, config["seed"]),
                "--engine": self.engine not in (None, config["engine"]),
                "--out": self.out not in (None, folder),
            }
        )
        if self.episodes is None and self.timesteps is None:
            raise ValueError("--resume-from: say how far to train, in all: --episodes N or --timesteps N.")
        evaluating = self._evaluations(config["agent"], config["settings"].get("risk_aversion"))
        if self.evaluate_every is None:
            evaluating["evaluations"] = config.get("evaluations")
        plan = dataclasses.replace(
            self._plan(),
            extend=True,
            episodes_per_record=config["episodes_per_record"],
            vmap_width=config["vmap_width"],
            keep_replay_buffer=self.keep_replay_buffer or kept_replay_buffer(folder),
            **evaluating,
        )
        run = RunSpec(config["seed"], folder, config["settings"], folder.name)
        workers = workers_of(self.workers)
        engine = config["engine"]
        job = Job(recorded.env, config["agent"], (run,), plan, recorded.options, engine, loggers, workers)
        return job, folder

    def _plan(self) -> Plan:
        from steadyrl.runs.job import command_line
        from steadyrl.runs.sweep import budget_of
        from steadyrl.training.run import Plan

        return Plan(
            budget_of(self.episodes, self.timesteps),
            checkpoint_seconds=self.checkpoint_every,
            command=command_line(),
            keep_replay_buffer=self.keep_replay_buffer,
        )

    def _evaluations(self, agent: str, aversion: Any) -> dict[str, Any]:
        """How often to evaluate and when to stop, of an agent with that risk aversion, as fields of a `Plan`."""
        from steadyrl.base.names import unknown
        from steadyrl.training.early_stopping import EarlyStopping

        if self.score not in SCORES:
            raise ValueError(f"--score: {unknown('score', self.score, SCORES)}")
        if self.evaluate_every is None:
            for option, given in {"--patience": self.patience, "--stop-at": self.stop_at}.items():
                if given is not None:
                    raise ValueError(f"{option}: it is decided by evaluations. Add --evaluate-every N, in episodes.")
            return {}
        if self.evaluate_every < 1 or self.evaluation_episodes < 2:
            raise ValueError("--evaluate-every needs at least 1, and --evaluation-episodes at least 2.")
        if isinstance(aversion, tuple | list):
            raise ValueError("--evaluate-every: a policy for a range of lambdas is evaluated once one is chosen.")
        fields: dict[str, Any] = {"evaluations": {"every": self.evaluate_every, "episodes": self.evaluation_episodes}}
        if self.patience is None and self.stop_at is None and not self.min_improvement:
            return fields
        if self.score == "mean_gini" and aversion is None:
            raise ValueError(f"--score mean_gini: {agent} has no risk_aversion. Use --score mean.")
        weight = float(aversion) if self.score == "mean_gini" else 0.0
        return {**fields, "early_stopping": EarlyStopping(self.patience, self.min_improvement, self.stop_at, weight)}


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
