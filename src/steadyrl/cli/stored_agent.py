"""Agents of run folders and files, as commands read them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steadyrl.cli.arguments import typed_env

if TYPE_CHECKING:
    import gymnasium as gym

    from steadyrl.agents.agent import Agent


class StoredAgent(NamedTuple):
    """An agent of a run folder or file, and the environment that is recorded with it."""

    path: Path
    agent: Agent
    recorded: dict[str, Any] | None
    at_lambda: float | None = None
    """The one that was chosen from a range."""

    @classmethod
    def read(cls, path: Path) -> StoredAgent:
        """From a run folder, or a file written by `Agent.save`."""
        from steadyrl.agents.loading import from_file
        from steadyrl.training.run_folder import read_agent

        file = read_agent(path)
        return cls(path, from_file(file), file.header["env"])

    def at(self, risk_aversion: float | None) -> StoredAgent:
        """The same, for one lambda of the range that the agent was trained for, if one is given."""
        return (
            self
            if risk_aversion is None
            else self._replace(agent=self.agent.at(risk_aversion), at_lambda=risk_aversion)
        )

    def __str__(self) -> str:
        """For example `mg of runs/mg (20,000 episodes)`."""
        chosen = "" if self.at_lambda is None else f", at lambda {self.at_lambda:g}"
        return f"{self.agent.name} of {self.path} ({self.agent.episodes:,} episodes{chosen})"

    @property
    def fields(self) -> dict[str, Any]:
        """Which agent it is, for JSON."""
        chosen = {} if self.at_lambda is None else {"risk_aversion": self.at_lambda}
        return {"agent": self.agent.name, "path": str(self.path), "trained_episodes": self.agent.episodes, **chosen}

    def described(self, env: str | None, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The id and the options of the environment that `environment` returns."""
        if env is not None:
            return env, options
        recorded = self.recorded or {"id": self.agent.env_name, "options": None}
        return recorded["id"], {**(recorded["options"] or {}), **options}

    def warn_if_unfinished(self) -> None:
        """Print a line if the run can be resumed."""
        from steadyrl.training.run_files import resume_files
        from steadyrl.training.run_folder import is_complete

        if self.path.is_dir() and resume_files(self.path) and not is_complete(self.path):
            episodes = f"{self.agent.episodes:,}"
            print(f"{self.path} is not complete: this is its agent after {episodes} episodes.", file=sys.stderr)

    def environment(self, env: str | None, options: dict[str, Any]) -> gym.Env[Any, Any]:
        """The environment to play in: the one that is named, or else the one that the agent learned in.

        A run folder may come from anybody, so a `module:factory` that it records is not called.
        """
        from steadyrl.envs.description import trusted
        from steadyrl.envs.resolve import resolve

        if env is not None:
            return resolve(env, **options)
        own: gym.Env[Any, Any] | None = self.agent.env
        if own is not None and not options:
            return own
        if self.recorded is None:
            raise ValueError(f"{self.path} does not record how to make its environment: name one with --env.")
        try:
            name, recorded = trusted(self.recorded)
            return resolve(name, **{**recorded, **options})
        except PermissionError as error:
            every = {**(self.recorded["options"] or {}), **options}
            typed = typed_env(self.recorded["id"], every)
            raise ValueError(f"{self.path}: {error} If you trust it, name it: {typed}") from None
