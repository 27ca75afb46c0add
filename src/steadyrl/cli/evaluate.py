"""`steadyrl evaluate` and `steadyrl compare`."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
        from steadyrl.evaluation.evaluate import evaluate

        picture = None if self.histogram is None else self.histogram.absolute()  # Environments may change the folder.
        stored = _Stored.read(self.path)
        stored.warn_if_unfinished()
        env = stored.environment(self.env, options_of(self.env_set))
        report = evaluate(
            stored.agent, env, self.episodes, gamma=self.gamma, deterministic=self.deterministic, seed=self.seed
        )
        print(json.dumps(report.to_dict(), indent=2) if self.json else report)
        if picture is not None:
            print(f"Picture: {report.histogram(picture)}", file=sys.stderr)


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
        from steadyrl.evaluation.compare import compare

        a, b = _Stored.read(self.a), _Stored.read(self.b)
        for stored in (a, b):
            stored.warn_if_unfinished()
        if self.env is None and a.recorded != b.recorded:
            raise ValueError(
                f"{self.a} and {self.b} were not trained in the same environment: name the one to play with --env."
            )
        env = a.environment(self.env, options_of(self.env_set))
        compared = compare(a.agent, b.agent, env, self.episodes, self.gamma, self.deterministic, self.seed)
        if self.json:
            print(json.dumps(compared.to_dict(), indent=2))
        else:
            print(f"a: {a.agent.name} of {self.a}\nb: {b.agent.name} of {self.b}\n\n{compared}")


class _Stored(NamedTuple):
    """An agent of a run folder or file, and the environment that is recorded with it."""

    path: Path
    agent: Agent
    recorded: dict[str, Any] | None

    @classmethod
    def read(cls, path: Path) -> _Stored:
        from steadyrl.agents.agent import from_file
        from steadyrl.training.run_folder import read_agent

        file = read_agent(path)
        return cls(path, from_file(file), file.header["env"])

    def warn_if_unfinished(self) -> None:
        from steadyrl.training.run_files import resume_files
        from steadyrl.training.run_folder import is_complete

        if self.path.is_dir() and resume_files(self.path) and not is_complete(self.path):
            episodes = f"{self.agent.episodes:,}"
            print(f"{self.path} is not complete: this is its agent after {episodes} episodes.", file=sys.stderr)

    def environment(self, env: str | None, options: dict[str, Any]) -> gym.Env[Any, Any]:
        """The environment to play in: the one that is named, or else the one that the agent learned in.

        A run folder may come from anybody, so a `module:factory` that it records is not called.
        """
        from steadyrl.envs.description import environment_from
        from steadyrl.envs.resolve import resolve

        if env is not None:
            return resolve(env, **options)
        own: gym.Env[Any, Any] | None = self.agent.env
        if own is not None and not options:
            return own
        if self.recorded is None:
            raise ValueError(f"{self.path} does not record how to make its environment: name one with --env.")
        recorded = {"id": self.recorded["id"], "options": {**(self.recorded["options"] or {}), **options}}
        try:
            return environment_from(recorded)
        except PermissionError as error:
            typed = " ".join(["--env", shlex.quote(recorded["id"]), *map(_typed, recorded["options"].items())])
            raise ValueError(f"{self.path}: {error} If you trust it, name it: {typed}") from None


def _typed(option: tuple[str, Any]) -> str:
    """An option of an environment as it is typed."""
    name, value = option
    return f"--env-set {shlex.quote(f'{name}={value if isinstance(value, str) else json.dumps(value)}')}"
