"""The command line. Nothing heavy is imported before a command is known, so that `--help` is instant."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    import gymnasium as gym

    from steadyrl.agents.agent import Agent
    from steadyrl.runs import Run
    from steadyrl.training import Listener

Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


def _count(texts: list[str]) -> int:
    """A whole number, also as 1e4 or 10_000."""
    text = texts[0]
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise ValueError(f"{text!r} is not a whole number, such as 20000 or 2e4.")
    return int(text) if text.lstrip("+-").replace("_", "").isdigit() else int(value)


_COUNT = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="N",
    instance_from_str=_count,
    is_instance=lambda value: value is None or isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
Count = Annotated[int, _COUNT]
PerhapsCount = Annotated[int | None, _COUNT]


@dataclass(frozen=True)
class Train:
    """Train an agent and write a run folder: config, metrics, checkpoint.

    Example: steadyrl train steadyrl/GuardedMaze-v0 --agent mg --set risk_aversion=1.4 --episodes 50000
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, or module:factory for an environment of your own."""
    agent: str = "mg"
    """The method, such as mg, mvo or reinforce; `steadyrl agents` tells about each of them."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times. `steadyrl agents NAME` lists them."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seed: int = 0
    """Seed of everything random in the run."""
    episodes: PerhapsCount = None
    """How many episodes to learn from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps to learn from, in place of --episodes."""
    engine: str = "auto"
    """Where episodes come from, such as compiled or gymnasium; auto takes what fits, and EnvPool only if asked."""
    out: Path | None = None
    """Run folder; by default runs/ENV-AGENT-seedN."""
    tensorboard: bool = False
    """Whether to write TensorBoard events too, into the run folder."""
    progress: bool = True
    """Whether to show progress."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.envs.resolve import resolve
        from steadyrl.envs.source import Source
        from steadyrl.runs import Run, config_of
        from steadyrl.tensorboard import TensorBoard
        from steadyrl.training import learn_together, rounds_of

        kind = _agent_class(self.agent)
        pairs = _pairs("--set", self.set)
        if self.episodes is not None and self.timesteps is not None:
            raise ValueError("give --episodes or --timesteps, not both.")
        # A function rather than an environment: engines that play many at once can make more of it.
        source = Source.of(partial(resolve, self.env, **_options(self.env_set)))
        chosen = kind.chosen(pairs, *source.spaces)
        settings = dataclasses.asdict(kind.settings_class(chosen).of_text(chosen))
        agent = kind(source, seed=self.seed, engine=self.engine, **settings)
        episodes = 20_000 if self.episodes is None and self.timesteps is None else self.episodes
        budget = {"timesteps": self.timesteps} if self.timesteps is not None else {"episodes": episodes or 0}
        out = self.out or Path("runs") / f"{_file_name(self.env)}-{kind.name}-seed{self.seed}"
        rounds_of([agent], self.timesteps, episodes)  # A wrong budget is refused before there is a folder.
        events = TensorBoard(out, agent) if self.tensorboard else None
        run = Run(out, agent, config_of(agent, [self.seed], budget))
        listeners: list[Listener] = [run, events] if events else [run]
        try:
            learn_together(
                [agent], self.timesteps, total_episodes=episodes, progress_bar=self.progress, listeners=listeners
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_kept(run)) from None
        except Exception as error:
            raise _TrainingError(f"{_told(error, self.env)} {_kept(run, error)}") from error
        finally:
            if events:
                events.close()
        run.save()
        print(_summary(agent))
        if events:
            print(f"Events: tensorboard --logdir {events.folder}")
        print(f"Saved in {out}. Its risk: steadyrl evaluate {out}")


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and report mean, dispersion and tail of its returns."""

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file written by agent.save."""
    episodes: Count = 200
    """How many episodes to play; more give narrower intervals."""
    env: str | None = None
    """Another environment, as an id or module:factory; by default the one that the agent was trained in."""
    env_set: Pairs = ()
    """An option of that environment, as name=value; may be given many times."""
    gamma: float | None = None
    """Discount of the discounted measures; the agent's own by default."""
    deterministic: bool = False
    """Whether the agent takes its most likely action instead of drawing one."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    histogram: Path | None = None
    """Write a picture of the returns to this file, such as returns.png."""
    json: bool = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.checkpoint import read
        from steadyrl.evaluation import evaluate

        agent = read(_agent_file(self.path))
        env = _environment(self.path, agent, self.env, _options(self.env_set))
        report = evaluate(agent, env, self.episodes, gamma=self.gamma, deterministic=self.deterministic, seed=self.seed)
        print(json.dumps(report.to_dict(), indent=2) if self.json else report)
        if self.histogram is not None:
            print(f"Picture: {report.histogram(self.histogram)}", file=sys.stderr)


@dataclass(frozen=True)
class Compare:
    """Play whole episodes with two trained agents and report how their mean, dispersion and tail differ."""

    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_A")]
    """A run folder, or a file written by agent.save."""
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_B")]
    """The same, of the agent to compare it with."""
    episodes: Count = 200
    """How many episodes to play with each; more give narrower intervals."""
    env: str | None = None
    """The environment, as an id or module:factory; by default the one that both agents were trained in."""
    env_set: Pairs = ()
    """An option of that environment, as name=value; may be given many times."""
    gamma: float | None = None
    """Discount of the discounted measures; the agents' own by default."""
    deterministic: bool = False
    """Whether the agents take their most likely actions instead of drawing them."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    json: bool = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.checkpoint import read, recorded_env
        from steadyrl.comparison import compare

        files = [_agent_file(path) for path in (self.a, self.b)]
        a, b = (read(file) for file in files)
        if self.env is None and recorded_env(files[0]) != recorded_env(files[1]):
            raise ValueError(
                f"{self.a} and {self.b} were not trained in the same environment: name the one to play with --env."
            )
        env = _environment(self.a, a, self.env, _options(self.env_set))
        compared = compare(a, b, env, self.episodes, self.gamma, self.deterministic, self.seed)
        if self.json:
            print(json.dumps(compared.to_dict(), indent=2))
        else:
            print(f"a: {a.name} of {self.a}\nb: {b.name} of {self.b}\n\n{compared}")


@dataclass(frozen=True)
class Reproduce:
    """Train every method of one of the paper's experiments, print its table and draw its figures."""

    experiment: tyro.conf.Positional[str]
    """Which one, such as maze."""
    quick: bool = False
    """A small scale that shows the shape of the result in a minute or two."""
    seeds: PerhapsCount = None
    """How many seeds; by default as many as the experiment's file says."""
    agents: str | None = None
    """Only these methods, separated by commas, such as mg,mvo."""
    episodes: PerhapsCount = None
    """Episodes for each seed; by default as many as the experiment's file says."""
    timesteps: PerhapsCount = None
    """Steps for each seed of the methods whose length the file gives in steps: DQN, TD3, and MVPI on them."""
    engine: str | None = None
    """Where episodes come from, such as gymnasium; by default as the experiment's file says."""
    out: Path | None = None
    """Folder of the results; by default results/EXPERIMENT, or results/EXPERIMENT-quick."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.experiment import load
        from steadyrl.reproduce import reproduce

        scale = {"seeds": self.seeds, "episodes": self.episodes, "timesteps": self.timesteps}
        experiment = load(self.experiment, quick=self.quick, **scale)
        methods = None if self.agents is None else [name.strip() for name in self.agents.split(",") if name.strip()]
        out = self.out or Path("results") / (f"{self.experiment}-quick" if self.quick else self.experiment)
        if self.engine is not None:
            experiment = dataclasses.replace(experiment, engine=self.engine)
        reproduce(experiment.only(methods) if methods else experiment, out)


@dataclass(frozen=True)
class Report:
    """Write a page about all runs below a folder: one HTML file that opens from disk, without a network."""

    folder: tyro.conf.Positional[Path]
    """Where to look for run folders."""
    out: Path | None = None
    """The file to write; by default report.html in that folder."""
    episodes: Count = 200
    """How many episodes to play with each agent for the distributions of returns."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.report import write_report

        print(f"Page: {write_report(self.folder, self.out, episodes=self.episodes)}")


@dataclass(frozen=True)
class Agents:
    """List the agents, or all settings of one of them with their defaults."""

    name: tyro.conf.Positional[str | None] = None
    """The agent to tell about."""

    def __call__(self) -> None:
        """Run the command."""
        if self.name is not None:
            print(_agent_class(self.name).__doc__)
            return
        from steadyrl.agents import AGENTS

        for name, kind in AGENTS.items():
            print(f"{name:<10}  {(kind.__doc__ or '').splitlines()[0]}")
        print("\nSettings of one of them: steadyrl agents NAME")


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, what is missing and how to get it, and whether it works."""

    def __call__(self) -> None:
        """Run the command; status 1 if the core does not work."""
        from steadyrl.doctor import describe, examine, is_well

        findings = examine()
        print(describe(findings))
        if not is_well(findings):
            sys.exit(1)


COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "evaluate": Evaluate,
    "compare": Compare,
    "reproduce": Reproduce,
    "report": Report,
    "agents": Agents,
    "doctor": Doctor,
}


class _TrainingError(Exception):
    """Training ended early; the message says why and what is left."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a mistake in what was asked for ends in one line, and in status 2."""
    # As `python -m` does, but last: nothing installed is hidden by a file that happens to lie here.
    sys.path.append(os.getcwd())
    try:
        _command(sys.argv[1:] if arguments is None else arguments)()
    except KeyboardInterrupt as stop:
        print(f"steadyrl: stopped. {str(stop) or 'Finished runs are kept.'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever reads our output, such as `head`, has seen enough; Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("STEADYRL_DEBUG") or not _is_users(error):
            raise
        print(f"steadyrl: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    finally:
        sys.path.pop()


def _command(arguments: list[str]) -> Callable[[], None]:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        from steadyrl.naming import unknown

        raise ValueError(unknown("command", arguments[0], COMMANDS))
    command: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="steadyrl",
        description="Risk-averse reinforcement learning: policies whose return is high and steady.",
        args=arguments,
    )
    return command


def _is_users(error: Exception) -> bool:
    """Whether an error says what the user can mend; anything else is a defect and keeps its traceback."""
    gymnasium = sys.modules.get("gymnasium")
    mendable: tuple[Any, ...] = (ValueError, OSError, FloatingPointError, ImportError, _TrainingError)
    return isinstance(error, (*mendable, gymnasium.error.Error) if gymnasium else mendable)


def _agent_class(name: str) -> type[Agent]:
    """The agent that a name or the name of a class stands for, in whatever capitals."""
    from steadyrl.agents import AGENTS
    from steadyrl.naming import choose, plain

    classes = {plain(kind.__name__): name for name, kind in AGENTS.items()}
    return choose("agent", classes.get(plain(name), name), AGENTS)


def _agent_file(path: Path) -> Path:
    """The checkpoint that `path` names; for a folder without one, an error that names those below it."""
    from steadyrl.runs import CHECKPOINT, agent_file

    if path.is_dir() and not agent_file(path).is_file():
        below = sorted(str(found.parent) for found in path.glob(f"*/{CHECKPOINT}"))
        hint = f" Did you mean {' or '.join(below[:3])}?" if below else ""
        raise ValueError(f"{path} holds no trained agent: there is no {CHECKPOINT} in it.{hint}")
    return agent_file(path)


def _options(texts: tuple[str, ...]) -> dict[str, Any]:
    return {name: _value(text) for name, text in _pairs("--env-set", texts).items()}


def _environment(path: Path, agent: Agent, env: str | None, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """The environment to play in: the one that is named, or else the one that the agent in `path` learned in."""
    from steadyrl.checkpoint import recorded_env
    from steadyrl.envs.factory_path import is_from_here
    from steadyrl.envs.resolve import resolve

    if env is not None:
        return resolve(env, **options)
    own: gym.Env[Any, Any] | None = agent.env
    if own is not None and not options:
        return own
    recorded = recorded_env(_agent_file(path))
    if recorded is None:
        raise ValueError(f"{path} does not say how to make its environment: name one with --env.")
    name = str(recorded["id"])
    if ":" in name and not is_from_here(name):
        # A run folder may come from anybody, and this would call any function that it names.
        raise ValueError(
            f"{path} was trained in {name}, and that module is not in the current directory. "
            f"If you trust it, name it: --env {name}"
        )
    return resolve(name, **{**recorded["options"], **options})


def _file_name(env: str) -> str:
    """The last part of an environment's name, as part of a folder's."""
    return env.rsplit("/", 1)[-1].replace(":", "-")


def _told(error: Exception, env: str) -> str:
    """What ended training, in one sentence that names the environment."""
    from steadyrl.episodes import FaultyEnvironmentError

    if isinstance(error, FaultyEnvironmentError):
        return str(error)
    said = f"{error}" if isinstance(error, ValueError | FloatingPointError) else f"{type(error).__name__}: {error}"
    return f"{env}: {said.rstrip('.')}."


def _kept(run: Run, error: Exception | None = None) -> str:
    """Save what was learned, and where an error came from; without anything learned, leave nothing behind."""
    if not run.agent.episodes:
        _discard(run.folder)
        return "Nothing had been learned yet." + (" STEADYRL_DEBUG=1 shows where." if error else "")
    run.save()
    kept = f"What was learned in {run.agent.episodes:,} episodes is saved in {run.folder}"
    if error is None:
        return f"{kept}."
    details = run.folder / "error.txt"
    details.write_text("".join(traceback.format_exception(error)))
    return f"{kept}, and where it failed in {details.name} there."


def _discard(folder: Path) -> None:
    """Remove a run's folder as it is before the first round; whatever else is in it stays."""
    from steadyrl.runs import CONFIG, METRICS

    for name in (CONFIG, METRICS):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # Not empty, so not ours alone.
        folder.rmdir()


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
    last = agent.history[-1] if agent.history else {}
    shown = ["return", "undiscounted_gini_deviation", *(name for name in last if name.endswith("_rate"))]
    told = ", ".join(f"{name} {last[name]:.3g}" for name in shown if name in last)
    return f"{agent.name} after {agent.episodes:,} episodes ({agent.timesteps:,} steps): {told}"
