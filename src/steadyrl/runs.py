"""A run's folder: what was asked for, what happened, and the agent at the end.

config.json        agent, environment, settings, seed, budget: all that the result depends on, with the versions
metrics.jsonl      a line for each record, appended as learning goes on
evaluations.jsonl  a line for each evaluation on the way, if there were any
checkpoint.steady  the agent, for `steadyrl.load`
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrl.checkpoint import describe_env, write_whole
from steadyrl.training import spreads

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.steady"
EVALUATIONS = "evaluations.jsonl"
_PACKAGES = ("steadyrl", "jax", "jaxlib", "numpy", "optax", "gymnasium", "scipy")
_SIMULATORS = ("mujoco", "box2d", "envpool")


def versions() -> dict[str, str]:
    """The software and the kind of machine that a result was made with."""
    installed = {name: importlib.metadata.version(name) for name in _PACKAGES}
    for name in _SIMULATORS:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), **installed, "machine": f"{platform.system()} {platform.machine()}"}


def config_of(agent: Agent, seeds: Sequence[int], budget: dict[str, int]) -> dict[str, Any]:
    """All that a run's result depends on. `seeds` are those that learned together: bits depend on the whole list."""
    return {
        "agent": agent.name,
        "env": describe_env(agent.env) or {"id": str(agent.env), "options": None},
        "settings": dataclasses.asdict(agent.settings),
        "seed": agent.seed,
        "seeds": list(seeds),
        "engine": agent.engine,
        "budget": budget,
        "versions": versions(),
    }


class Run:
    """The folder of one agent while it learns; a listener of `learn_together`."""

    def __init__(self, folder: Path, agent: Agent, config: dict[str, Any], every: int = 1) -> None:
        """Start a new run in `folder`, which must not hold one; each record is the mean of `every` rounds."""
        if (folder / CONFIG).exists():
            raise FileExistsError(f"{folder} already holds a run. Choose another folder, or remove it.")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.agent, self.every = folder, agent, every
        self._waiting: list[dict[str, Any]] = []
        started = datetime.now(UTC).isoformat(timespec="seconds")
        content = {**config, "started": started, "command": " ".join(sys.argv)}
        write_whole(folder / CONFIG, json.dumps(content, indent=2).encode())

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Append the records of this run's agent."""
        for agent, latest in zip(agents, metrics, strict=True):
            if agent is self.agent:
                self._waiting += latest
        lines = []
        while len(self._waiting) >= self.every:
            lines.append(json.dumps(_mean_record(self._waiting[: self.every])) + "\n")
            del self._waiting[: self.every]
        with (self.folder / METRICS).open("a") as file:
            file.writelines(lines)

    def add_evaluation(self, record: dict[str, Any]) -> None:
        """Append what an evaluation on the way found."""
        with (self.folder / EVALUATIONS).open("a") as file:
            file.write(json.dumps(record) + "\n")

    def save(self) -> None:
        """Write the agent as it is now, without a replay memory, and what was not yet enough for a record."""
        if self._waiting:
            with (self.folder / METRICS).open("a") as file:
                file.write(json.dumps(_mean_record(self._waiting)) + "\n")
            self._waiting = []
        self.agent.save(self.folder / CHECKPOINT, memory=False)


def read_config(folder: Path) -> dict[str, Any]:
    """What a run was asked for."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no run: there is no {CONFIG} in it.")
    return dict(json.loads(path.read_text()))


def read_metrics(folder: Path, file: str = METRICS) -> list[dict[str, Any]]:
    """The records of a run, or its EVALUATIONS, in order."""
    return [json.loads(line) for line in (folder / file).read_text().splitlines()]


def is_finished(folder: Path, config: dict[str, Any]) -> bool:
    """Whether `folder` holds a whole run of exactly this config."""
    if not (folder / CHECKPOINT).is_file():
        return False
    found = read_config(folder)
    return bool({name: found.get(name) for name in config} == json.loads(json.dumps(config)))


def agent_file(path: Path) -> Path:
    """The checkpoint that `path` names: a file, or a run's folder."""
    return path / CHECKPOINT if path.is_dir() else path


def _mean_record(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Counters and clock of the last round, the sum of the work, the mean of everything else."""
    counters, work = ("iteration", "episodes", "timesteps", "time"), ("idle_steps", "seconds_")
    last = rounds[-1]
    together = {k: np.sum if k.startswith(work) else np.mean for k in last}
    means = {k: last[k] if k in counters else float(together[k]([r[k] for r in rounds if k in r])) for k in last}
    if 1 < len(rounds) == 1 + last["episodes"] - rounds[0]["episodes"]:  # Each a single episode: they know no spread.
        spread = spreads(*(np.array([r[k] for r in rounds]) for k in ("return", "discounted_return")))
        means |= {name: float(value) for name, value in spread.items()}
    return means
