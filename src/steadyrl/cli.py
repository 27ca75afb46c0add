"""The command line. Nothing heavy is imported before a command is known, so that `--help` is instant."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


@dataclass(frozen=True)
class Train:
    """Train an agent and write a run folder: config, metrics, checkpoint.

    Example: steadyrl train steadyrl/GuardedMaze-v0 --agent mg --set risk_aversion=1.4 --episodes 50000
    """

    env: tyro.conf.Positional[str]
    """Gymnasium id of the environment, such as steadyrl/GuardedMaze-v0."""
    agent: str = "mg"
    """The method: mg, mvo, tamar, mvp, mvpi, mean_risk, reinforce or q_learning; `steadyrl agents` tells about each."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times. `steadyrl agents NAME` lists them."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seed: int = 0
    """Seed of everything random in the run."""
    episodes: int | None = None
    """How many episodes to learn from; 20,000 if neither this nor --timesteps is given."""
    timesteps: int | None = None
    """How many environment steps to learn from, in place of --episodes."""
    engine: str = "auto"
    """Where episodes come from: compiled, gymnasium, or the faster of the two that fits."""
    out: Path | None = None
    """Run folder; by default runs/ENV-AGENT-seedN."""
    progress: bool = True
    """Whether to show progress."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.agents import AGENTS
        from steadyrl.envs.resolve import resolve
        from steadyrl.naming import unknown
        from steadyrl.runs import Run, config_of
        from steadyrl.training import learn_together, rounds_of

        if self.agent not in AGENTS:
            raise ValueError(unknown("agent", self.agent, AGENTS))
        kind = AGENTS[self.agent]
        settings = kind.Settings.of_text(_pairs("--set", self.set))
        env = resolve(self.env, **{k: _value(v) for k, v in _pairs("--env-set", self.env_set).items()})
        agent = kind(env, seed=self.seed, engine=self.engine, **dataclasses.asdict(settings))
        if self.episodes is not None and self.timesteps is not None:
            raise ValueError("give --episodes or --timesteps, not both.")
        episodes = 20_000 if self.episodes is None and self.timesteps is None else self.episodes
        budget = {"timesteps": self.timesteps} if self.timesteps is not None else {"episodes": episodes or 0}
        out = self.out or Path("runs") / f"{self.env.rsplit('/', 1)[-1]}-{self.agent}-seed{self.seed}"
        rounds_of([agent], self.timesteps, episodes)  # A wrong budget is refused before there is a folder.
        run = Run(out, agent, config_of(agent, [self.seed], budget))
        try:
            learn_together(
                [agent], self.timesteps, total_episodes=episodes, progress_bar=self.progress, listeners=[run]
            )
        finally:  # Whatever stopped it, what was learned is kept.
            run.save()
        print(_summary(agent))
        print(f"Saved in {out}. Its risk: steadyrl evaluate {out}")


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and report mean, dispersion and tail of its returns."""

    path: tyro.conf.Positional[Path]
    """A run folder, or a file written by agent.save."""
    episodes: int = 200
    """How many episodes to play; more give narrower intervals."""
    env: str | None = None
    """Gymnasium id of another environment; by default the one that the agent was trained in."""
    env_set: Pairs = ()
    """An option of that environment, as name=value; may be given many times."""
    gamma: float | None = None
    """Discount of the discounted measures; the agent's own by default."""
    deterministic: bool = False
    """Whether the agent takes its most likely action instead of drawing one."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    json: bool = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.checkpoint import read
        from steadyrl.envs.resolve import resolve
        from steadyrl.evaluation import evaluate
        from steadyrl.runs import agent_file

        options = {k: _value(v) for k, v in _pairs("--env-set", self.env_set).items()}
        agent = read(agent_file(self.path))
        if self.env is not None:
            env = resolve(self.env, **options)
        elif agent.env is None:
            raise ValueError(f"{self.path} does not say how to make its environment: name one with --env.")
        elif options:
            spec = agent.env.spec
            assert spec is not None
            env = resolve(spec.id, **{**spec.kwargs, **options})
        else:
            env = agent.env
        report = evaluate(agent, env, self.episodes, gamma=self.gamma, deterministic=self.deterministic, seed=self.seed)
        print(json.dumps(report.to_dict(), indent=2) if self.json else report)


@dataclass(frozen=True)
class Reproduce:
    """Train every method of one of the paper's experiments, print its table and draw its figures."""

    experiment: tyro.conf.Positional[str]
    """Which one: maze."""
    quick: bool = False
    """A small scale that shows the shape of the result in a minute or two."""
    seeds: int | None = None
    """How many seeds; by default as many as the experiment's file says."""
    agents: str | None = None
    """Only these methods, separated by commas, such as mg,mvo."""
    episodes: int | None = None
    """Episodes for each seed; by default as many as the experiment's file says."""
    out: Path | None = None
    """Folder of the results; by default results/EXPERIMENT, or results/EXPERIMENT-quick."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.experiment import load
        from steadyrl.reproduce import reproduce

        experiment = load(self.experiment, quick=self.quick, seeds=self.seeds, episodes=self.episodes)
        methods = None if self.agents is None else [name.strip() for name in self.agents.split(",") if name.strip()]
        out = self.out or Path("results") / (f"{self.experiment}-quick" if self.quick else self.experiment)
        reproduce(experiment.only(methods) if methods else experiment, out)


@dataclass(frozen=True)
class Report:
    """Write a page about all runs below a folder: one HTML file that opens from disk, without a network."""

    folder: tyro.conf.Positional[Path]
    """Where to look for run folders."""
    out: Path | None = None
    """The file to write; by default report.html in that folder."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.report import write_report

        print(f"Page: {write_report(self.folder, self.out)}")


@dataclass(frozen=True)
class Agents:
    """List the agents, or all settings of one of them with their defaults."""

    name: tyro.conf.Positional[str | None] = None
    """The agent to tell about."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.agents import AGENTS
        from steadyrl.naming import unknown

        if self.name is None:
            for name, kind in AGENTS.items():
                print(f"{name:<10}  {(kind.__doc__ or '').splitlines()[0]}")
            print("\nSettings of one of them: steadyrl agents NAME")
        elif self.name in AGENTS:
            print(AGENTS[self.name].__doc__)
        else:
            raise ValueError(unknown("agent", self.name, AGENTS))


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a mistake in what was asked for ends in one line, and in status 2."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"train": Train, "evaluate": Evaluate, "reproduce": Reproduce, "report": Report, "agents": Agents},
        prog="steadyrl",
        description="Risk-averse reinforcement learning: policies whose return is high and steady.",
        args=arguments,
    )
    try:
        command()
    except KeyboardInterrupt:
        print(
            "steadyrl: stopped. Finished runs are kept, and a `train` has saved what it learned so far.",
            file=sys.stderr,
        )
        sys.exit(130)
    except Exception as error:
        if os.environ.get("STEADYRL_DEBUG") or not _is_users(error):
            raise
        print(f"steadyrl: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


def _is_users(error: Exception) -> bool:
    """Whether an error says what the user can mend; anything else is a defect and keeps its traceback."""
    gymnasium = sys.modules.get("gymnasium")
    mendable: tuple[Any, ...] = (ValueError, OSError, FloatingPointError, ModuleNotFoundError)
    return isinstance(error, (*mendable, gymnasium.error.Error) if gymnasium else mendable)


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise ValueError(f"{option} {text}: write name=value.")
    return dict(text.split("=", 1) for text in texts)


def _value(text: str) -> Any:
    """A number, true, false or list as JSON has it; anything else is text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _summary(agent: Agent) -> str:
    shown = ("return", "gini_deviation", "goal_rate", "red_visit_rate", "white_path_rate")
    last = agent.history[-1] if agent.history else {}
    told = ", ".join(f"{name} {last[name]:.3g}" for name in shown if name in last)
    return f"{agent.name} after {agent.episodes:,} episodes ({agent.timesteps:,} steps): {told}"
