"""`steadyrl evaluate` and `steadyrl compare`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steadyrl.cli.arguments import Count, Pairs, options_of

if TYPE_CHECKING:
    import gymnasium as gym

    from steadyrl.agents.agent import Agent


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
        from steadyrl.agents import load
        from steadyrl.evaluation.evaluate import evaluate

        agent = load(_agent_file(self.path))
        _warn_if_unfinished(self.path, agent)
        env = _environment(self.path, agent, self.env, options_of(self.env_set))
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
        from steadyrl.agents import load
        from steadyrl.evaluation.compare import compare

        files = [_agent_file(path) for path in (self.a, self.b)]
        a, b = (load(file) for file in files)
        for path, agent in ((self.a, a), (self.b, b)):
            _warn_if_unfinished(path, agent)
        if self.env is None and _recorded_env(files[0]) != _recorded_env(files[1]):
            raise ValueError(
                f"{self.a} and {self.b} were not trained in the same environment: name the one to play with --env."
            )
        env = _environment(self.a, a, self.env, options_of(self.env_set))
        compared = compare(a, b, env, self.episodes, self.gamma, self.deterministic, self.seed)
        if self.json:
            print(json.dumps(compared.to_dict(), indent=2))
        else:
            print(f"a: {a.name} of {self.a}\nb: {b.name} of {self.b}\n\n{compared}")


def _agent_file(path: Path) -> Path:
    """The checkpoint that `path` names; for a folder without one, an error that names those below it."""
    from steadyrl.training.run_folder import CHECKPOINT, agent_file

    if path.is_dir() and not agent_file(path).is_file():
        below = sorted(str(found.parent) for found in path.rglob(CHECKPOINT))
        hint = f" Did you mean {' or '.join(below[:3])}?" if below else ""
        raise ValueError(f"{path} holds no trained agent: there is no {CHECKPOINT} in it.{hint}")
    return agent_file(path)


def _warn_if_unfinished(path: Path, agent: Agent) -> None:
    from steadyrl.training.run_folder import resume_files

    if path.is_dir() and resume_files(path):
        print(f"{path} is not complete: this is its agent after {agent.episodes:,} episodes.", file=sys.stderr)


def _environment(path: Path, agent: Agent, env: str | None, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """The environment to play in: the one that is named, or else the one that the agent in `path` learned in."""
    from steadyrl.envs.factory_path import is_from_here
    from steadyrl.envs.resolve import resolve

    if env is not None:
        return resolve(env, **options)
    own: gym.Env[Any, Any] | None = agent.env
    if own is not None and not options:
        return own
    recorded = _recorded_env(_agent_file(path))
    if recorded is None:
        raise ValueError(f"{path} does not record how to make its environment: name one with --env.")
    name = str(recorded["id"])
    if ":" in name and not is_from_here(name):
        # A run folder may come from anybody, and this would call any function that it names.
        raise ValueError(
            f"{path} was trained in {name}, and that module is not in the current directory. "
            f"If you trust it, name it: --env {name}"
        )
    return resolve(name, **{**recorded["options"], **options})


def _recorded_env(file: Path) -> dict[str, Any] | None:
    """The id and options of the environment that the agent in a file was trained in, if they are known."""
    from steadyrl.training.checkpoint import read_header

    recorded: dict[str, Any] | None = read_header(file)["env"]
    return recorded
