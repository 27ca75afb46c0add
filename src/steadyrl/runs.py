"""A run's folder: what was asked for, what happened, and the agent at the end.

config.json        agent, environment, settings, seed, budget: all that the result depends on, with the versions
metrics.jsonl      a line for each record, appended as learning goes on
evaluations.jsonl  a line for each evaluation on the way, if there were any
resume-N.steady    after N rounds, all that it takes to go on: there while the run is not complete
checkpoint.steady  the agent, for `steadyrl.load`: when the run is complete, which is noted in it, or was broken off

A folder is thus complete, resumable or as good as absent, at whatever moment its process ends. What was appended after
the last checkpoint is cut off when the run goes on from there.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from steadyrl import checkpoint
from steadyrl.checkpoint import PARTIAL, describe_env, said_what_is_not_written, write_whole
from steadyrl.cores import usable_cores
from steadyrl.training import spreads

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.steady"
EVALUATIONS, ERROR = "evaluations.jsonl", "error.txt"
RESUME = "resume-{}.steady"
_COMPLETE = "complete"
_NOT_COMPARED = ("started", "command")
_CONFIG_KINDS = {"agent": str, "env": dict, "settings": dict, "seed": int}
State = Literal["absent", "resumable", "complete"]
_PACKAGES = ("steadyrl", "jax", "jaxlib", "numpy", "optax", "gymnasium", "scipy")
_SIMULATORS = ("mujoco", "box2d", "envpool")


def versions() -> dict[str, str]:
    """The software and the kind of machine that a result was made with."""
    installed = {name: importlib.metadata.version(name) for name in _PACKAGES}
    for name in _SIMULATORS:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), **installed, "machine": f"{platform.system()} {platform.machine()}"}


def config_of(
    agent: Agent, budget: dict[str, int], lanes: int | None = None, threads: int | None = None
) -> dict[str, Any]:
    """All that a run's result depends on, to the last bit.

    `lanes` are those of a compiled program, 1 unless it is said, and `threads` those that compute: as many as there
    are, unless it is said.
    """
    return {
        "agent": agent.name,
        "env": describe_env(agent.env) or {"id": str(agent.env), "options": None},
        "settings": dataclasses.asdict(agent.settings),
        "seed": agent.seed,
        "engine": agent.engine,
        "lanes": lanes or 1,
        "budget": budget,
        "threads": threads or usable_cores(),
        "versions": versions(),
    }


def state_of(folder: Path, config: dict[str, Any]) -> State:
    """What is there of the run of this config; an error if the folder holds another one, or what is no run's."""
    remedy = "Choose another --out, or remove it."
    if not (folder / CONFIG).is_file():
        for name in (METRICS, EVALUATIONS, CHECKPOINT):
            if (folder / name).exists():
                raise FileExistsError(f"{folder} holds a {name} without a {CONFIG}, so it is no run's. {remedy}")
        return "absent"
    found = read_config(folder)
    if not is_config(found):
        raise FileExistsError(f"{folder} already holds a {CONFIG} that is not a run's. {remedy}")
    if differing := _differences(found, json.loads(json.dumps(config))):
        raise FileExistsError(f"{folder} already holds a run with other {', '.join(differing)}. {remedy}")
    if is_complete(folder):
        return "complete"
    if resume_files(folder):
        return "resumable"
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"{folder} already holds an agent, but nothing to go on from. {remedy}")
    return "absent"


def is_config(found: Any) -> bool:
    """Whether a config.json is one of ours."""
    return isinstance(found, dict) and all(isinstance(found.get(key), kind) for key, kind in _CONFIG_KINDS.items())


def is_complete(folder: Path) -> bool:
    """Whether the run in the folder came to its end."""
    file = folder / CHECKPOINT
    return file.is_file() and checkpoint.note_of(file).get(_COMPLETE, False)


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What two configs do not agree on."""
    named = []
    for name in (found.keys() | wanted.keys()) - set(_NOT_COMPARED):
        old, new = found.get(name), wanted.get(name)
        if old != new and isinstance(old, dict) and isinstance(new, dict):
            parts = sorted(part for part in old.keys() | new.keys() if old.get(part) != new.get(part))
            named.append(f"{name} ({', '.join(f'{part} {old.get(part)}, here {new.get(part)}' for part in parts)})")
        elif old != new:
            hint = f"; NPROC={old} makes them as many" if name == "threads" else ""
            named.append(f"{name} ({old}, here {new}{hint})")
    return sorted(named)


def resume_files(folder: Path) -> dict[int, Path]:
    """Number of rounds -> the checkpoint after them."""
    start, end = RESUME.split("{}")
    found = {path.name.removeprefix(start).removesuffix(end): path for path in folder.glob(RESUME.format("*"))}
    return {int(rounds): path for rounds, path in found.items() if rounds.isdecimal()}


class Run:
    """The folder of one agent while it learns; a listener of `learn_together`."""

    def __init__(self, folder: Path, agent: Agent, every: int = 1) -> None:
        """Each record is the mean of `every` rounds."""
        self.folder, self.agent, self.every = folder, agent, every
        self._waiting: list[dict[str, Any]] = []

    @classmethod
    def begin(cls, folder: Path, agent: Agent, config: dict[str, Any], every: int = 1, command: str = "") -> Self:
        """A new run, in place of one that has no checkpoint; see `state_of`."""
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, agent, every)
        if (folder / CONFIG).exists():
            run.discard()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        content = {**config, "started": started, "command": command}
        write_whole(folder / CONFIG, json.dumps(content, indent=2).encode())
        return run

    @classmethod
    def resume(cls, folder: Path, agent: Agent, rounds: int, every: int = 1) -> Self:
        """Go on after so many rounds, for which there is a checkpoint."""
        run = cls(folder, agent, every)
        note = checkpoint.restore(agent, folder / RESUME.format(rounds))
        for name in (METRICS, EVALUATIONS):
            size = (folder / name).stat().st_size if (folder / name).exists() else 0
            if size < note[name]:
                raise ValueError(f"{folder / name} is shorter than when its checkpoint was written: it was altered.")
            if size > note[name]:
                os.truncate(folder / name, note[name])
        for path in (folder / ERROR, folder / CHECKPOINT, *_not_whole(folder)):
            path.unlink(missing_ok=True)
        run._waiting = note["waiting"]
        return run

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Append the records of this run's agent."""
        for agent, latest in zip(agents, metrics, strict=True):
            if agent is self.agent:
                self._waiting += latest
        lines = []
        while len(self._waiting) >= self.every:
            lines.append(json.dumps(_mean_record(self._waiting[: self.every])) + "\n")
            del self._waiting[: self.every]
        _append(self.folder / METRICS, "".join(lines))

    def add_evaluation(self, record: dict[str, Any]) -> None:
        """Append what an evaluation on the way found."""
        _append(self.folder / EVALUATIONS, json.dumps(record) + "\n")

    @property
    def evaluated(self) -> int:
        """How many episodes had been learned from at the last evaluation."""
        found = read_metrics(self.folder, EVALUATIONS) if (self.folder / EVALUATIONS).exists() else []
        return int(found[-1]["episodes"]) if found else 0

    def keep(self) -> None:
        """Write what it takes to go on from here, in place of the checkpoint before."""
        sizes = {name: _size_on_disk(self.folder / name) for name in (METRICS, EVALUATIONS)}
        kept = self.folder / RESUME.format(self.agent.iterations)
        checkpoint.write(self.agent, kept, note={**sizes, "waiting": self._waiting})
        for path in resume_files(self.folder).values():
            if path != kept:
                path.unlink()

    def finish(self) -> None:
        """Write the agent at the end, and what was not yet enough for a record."""
        if self._waiting:
            _append(self.folder / METRICS, json.dumps(_mean_record(self._waiting)) + "\n")
            self._waiting = []
        self.save(complete=True)
        for path in resume_files(self.folder).values():
            path.unlink()

    def save(self, complete: bool = False) -> None:
        """Write the agent as it is now, without a replay memory."""
        checkpoint.write(self.agent, self.folder / CHECKPOINT, memory=False, note={_COMPLETE: complete})

    def discard(self) -> None:
        """Remove what there is of a run; whatever else is in the folder stays."""
        files = [self.folder / name for name in (METRICS, EVALUATIONS, CHECKPOINT, ERROR)]
        # config.json is the last: what lies beside one is known to be ours.
        for path in (*files, *resume_files(self.folder).values(), *_not_whole(self.folder), self.folder / CONFIG):
            path.unlink(missing_ok=True)


def _not_whole(folder: Path) -> list[Path]:
    """What processes leave that were killed while they wrote."""
    return list(folder.glob(f".*{PARTIAL}"))


def _append(path: Path, text: str) -> None:
    """All of it or nothing, as long as the process lives."""
    before = path.stat().st_size if path.exists() else 0
    with said_what_is_not_written(path):
        try:
            with path.open("a") as file:
                file.write(text)
        except OSError:
            with suppress(OSError):
                os.truncate(path, before)
            raise


def _size_on_disk(path: Path) -> int:
    """Of a file that is there for good, whatever happens to the machine; 0 if there is none."""
    if not path.exists():
        return 0
    with said_what_is_not_written(path), path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def read_config(folder: Path) -> dict[str, Any]:
    """What a run was asked for."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no run: there is no {CONFIG} in it.")
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError):
        raise ValueError(f"{path} is not that of a run.") from None


def read_metrics(folder: Path, file: str = METRICS) -> list[dict[str, Any]]:
    """The records of a run, or its EVALUATIONS, in order."""
    return [json.loads(line) for line in (folder / file).read_text().splitlines()]


def agent_file(path: Path) -> Path:
    """The checkpoint that `path` names: a file, or in a run's folder the one at the end or else the latest."""
    if not path.is_dir() or (path / CHECKPOINT).is_file():
        return path / CHECKPOINT if path.is_dir() else path
    resumable = resume_files(path)
    return resumable[max(resumable)] if resumable else path / CHECKPOINT


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
