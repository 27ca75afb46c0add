"""A run's folder: its configuration, its metrics, and the agent at the end; see `run_files` for the files.

A folder is complete, resumable or as good as absent, at whatever moment its process ends. What was appended after the
last checkpoint is cut off when the run is resumed from there.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from steadyrl.base.files import append_atomic, synced_size, write_atomic
from steadyrl.base.machine import usable_cores
from steadyrl.base.parsing import parse_json
from steadyrl.base.source_commit import source_commit
from steadyrl.envs.description import describe_env
from steadyrl.training import checkpoint
from steadyrl.training.algorithm import Trainee
from steadyrl.training.records import Record, merge_records
from steadyrl.training.run_files import (
    CHECKPOINT,
    CONFIG,
    END,
    EVALUATIONS,
    METRICS,
    RESUME,
    partial_files,
    refuse_links,
    remove_error,
    remove_leftovers,
    remove_run_files,
    resume_files,
)

_COMPLETE, _WAITING, _ROUNDS = "complete", "waiting", "rounds"
STOPPED_EARLY = "stopped_early"
"""In config.json: why and when training stopped before its budget was used up, if it did."""
_NOT_COMPARED = ("started", "command", "commit", "workers", STOPPED_EARLY, "extensions")
_CONFIG_KINDS = {"agent": str, "env": dict, "settings": dict, "seed": int}
State = Literal["absent", "resumable", "complete"]
_ATTEMPTS = 5
"""How often to look for an agent in the folder of a run that may be in training."""
_PACKAGES = ("steadyrl", "jax", "jaxlib", "numpy", "optax", "gymnasium", "scipy")
_SIMULATORS = ("mujoco", "box2d", "envpool", "gymnax", "brax")


def versions() -> dict[str, str]:
    """The software and the kind of machine that a result was made with."""
    installed = {name: importlib.metadata.version(name) for name in _PACKAGES}
    for name in _SIMULATORS:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), **installed, "machine": f"{platform.system()} {platform.machine()}"}


def config_of(
    agent: Trainee, budget: dict[str, int], vmap_width: int | None = None, threads: int | None = None
) -> dict[str, Any]:
    """Everything a run's result depends on, to the last bit.

    `vmap_width` is that of the compiled program, 1 by default; `threads` are those that compute, by default as many as
    there are cores.
    """
    return {
        "agent": agent.name,
        "env": describe_env(agent.env) or {"id": str(agent.env), "options": None},
        "settings": dataclasses.asdict(agent.settings),
        "seed": agent.seed,
        "engine": agent.engine,
        "vmap_width": vmap_width or 1,
        "budget": budget,
        "threads": threads or usable_cores(),
        "versions": versions(),
        **agent.config_entries,
    }


def state_of(folder: Path, config: dict[str, Any]) -> State:
    """The state of the run with this config; an error if the folder holds another run, or files of another kind."""
    remedy = "Choose another --out, or remove it."
    refuse_links(folder)
    if not (folder / CONFIG).is_file():
        named = [folder / name for name in (METRICS, EVALUATIONS, CHECKPOINT)]
        for path in (*named, *resume_files(folder).values()):
            if path.exists():
                raise FileExistsError(
                    f"{folder} holds a {path.name} without a {CONFIG}, so it is not a run folder. {remedy}"
                )
        return "absent"
    found = read_config(folder)
    if not is_config(found):
        raise FileExistsError(f"{folder} already holds a {CONFIG} that does not describe a steadyrl run. {remedy}")
    if differing := _differences(found, json.loads(json.dumps(config))):
        more = _how_to_train_more(folder, found, config) if len(differing) == 1 else ""
        raise FileExistsError(f"{folder} already holds a run with other {', '.join(differing)}. {remedy}{more}")
    if is_complete(folder):
        return "complete"
    if resume_files(folder):
        return "resumable"
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"{folder} already holds an agent, but nothing to resume from. {remedy}")
    return "absent"


def _how_to_train_more(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """A sentence for a run that differs in its budget alone, if that is larger now."""
    old, new = found.get("budget"), wanted.get("budget")
    if not isinstance(old, dict) or not isinstance(new, dict) or old.keys() != new.keys():
        return ""
    ((unit, total),) = new.items()
    if not isinstance(old[unit], int) or total <= old[unit]:
        return ""
    return f" Or extend that run: steadyrl train --resume-from {shlex.quote(str(folder))} --{unit} {total}."


def is_config(found: Any) -> bool:
    """Whether a config.json is that of a run."""
    return isinstance(found, dict) and all(isinstance(found.get(key), kind) for key, kind in _CONFIG_KINDS.items())


def is_complete(folder: Path) -> bool:
    """Whether the run in the folder is complete."""
    file = folder / CHECKPOINT
    return file.is_file() and checkpoint.read_note(file).get(_COMPLETE) is True


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """The entries in which two configs differ."""
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


class Run:
    """The folder of one agent during training; a listener of the training loop."""

    def __init__(self, folder: Path, agent: Trainee, every: int = 1) -> None:
        """Each record is the mean of `every` rounds."""
        self.folder, self.agent, self.every = folder, agent, every
        self._waiting: list[dict[str, Any]] = []
        self._before_end: dict[str, Any] | None = None
        self.why_stopped: str | None = None
        """What a callback that stops training says about it."""

    @classmethod
    def begin(cls, folder: Path, agent: Trainee, config: dict[str, Any], every: int = 1, command: str = "") -> Self:
        """A new run, in place of one that has no checkpoint; see `state_of`."""
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, agent, every)
        for path in partial_files(folder):
            path.unlink(missing_ok=True)
        if (folder / CONFIG).exists():
            run.discard()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        made = {"started": started, "command": command, "commit": source_commit()}
        content = {**config, **made, "workers": agent.workers}
        write_atomic(folder / CONFIG, json.dumps(content, indent=2).encode())
        return run

    @classmethod
    def resume(cls, folder: Path, agent: Trainee, rounds: int, every: int = 1) -> Self:
        """Resume from the checkpoint after `rounds` rounds."""
        run, path = cls(folder, agent, every), folder / RESUME.format(rounds)
        file = checkpoint.read(path)
        sizes, run._waiting = _resume_note(path, file.header["note"])
        checkpoint.restore(agent, file)
        for name, then in sizes.items():
            size = (folder / name).stat().st_size if (folder / name).exists() else 0
            if size < then:
                raise ValueError(f"{folder / name} is shorter than when its checkpoint was written: it was altered.")
            if size > then:
                os.truncate(folder / name, then)
        remove_error(folder)
        for path in (folder / CHECKPOINT, folder / END, *partial_files(folder)):
            path.unlink(missing_ok=True)
        return run

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        """Append the records of this run's agent."""
        for agent, latest in zip(agents, records, strict=True):
            if agent is self.agent:
                self._waiting += latest
        lines = []
        while len(self._waiting) >= self.every:
            lines.append(json.dumps(merge_records(self._waiting[: self.every])) + "\n")
            del self._waiting[: self.every]
        append_atomic(self.folder / METRICS, "".join(lines))

    def add_evaluation(self, record: dict[str, Any]) -> None:
        """Append the result of an evaluation during training."""
        append_atomic(self.folder / EVALUATIONS, json.dumps(record) + "\n")

    @property
    def evaluations(self) -> list[Record]:
        """The evaluations so far."""
        return read_metrics(self.folder, EVALUATIONS) if (self.folder / EVALUATIONS).exists() else []

    def checkpoint(self) -> None:
        """Write everything needed to resume from here, in place of the previous checkpoint."""
        latest = self.folder / RESUME.format(self.agent.iterations)
        checkpoint.write(self.agent, latest, note=self._note())
        for path in resume_files(self.folder).values():
            if path != latest:
                path.unlink()

    def begin_end(self) -> None:
        """All rounds are played: what is recorded from now on is of the end of the run."""
        self._before_end = self._note()

    def _note(self) -> dict[str, Any]:
        """Where a run that is resumed from here goes on in its files."""
        sizes = {name: synced_size(self.folder / name) for name in (METRICS, EVALUATIONS)}
        return {**sizes, _WAITING: list(self._waiting)}

    def finish(self, stopped_early: str | None = None, keep_replay_buffer: bool = False) -> None:
        """Write the agent at the end, and the rest that was not enough for a record.

        `stopped_early` is the reason, if the budget is not used up; it is recorded in the config.
        """
        counts = {"episodes": self.agent.episodes, "timesteps": self.agent.timesteps}
        change_config(self.folder, {STOPPED_EARLY: {"reason": stopped_early, **counts} if stopped_early else None})
        before = self._before_end or self._note()
        if self._waiting:
            append_atomic(self.folder / METRICS, json.dumps(merge_records(self._waiting)) + "\n")
            self._waiting = []
        if before != self._note():  # An extension of the run begins with what there was before its end.
            content = {_ROUNDS: self.agent.iterations, **before}
            write_atomic(self.folder / END, json.dumps(content).encode())
        self.save(complete=True, replay_buffer=keep_replay_buffer)
        remove_leftovers(self.folder)

    def save(self, complete: bool = False, replay_buffer: bool = False) -> None:
        """Write the agent as it is now, by default without its replay buffer."""
        checkpoint.write(self.agent, self.folder / CHECKPOINT, replay_buffer, complete_note(complete))

    def discard(self) -> None:
        """Remove the files of a run; other files in the folder stay."""
        remove_run_files(self.folder)


def complete_note(complete: bool) -> dict[str, bool]:
    """The note of the agent in a run folder: whether the run is complete."""
    return {_COMPLETE: complete}


def resume_note_at_end(folder: Path, rounds: int) -> dict[str, Any]:
    """The note of a checkpoint at the end of a complete run, as it was before the end added records of its own."""
    path = folder / END
    found = parse_json(path.read_bytes()) if path.is_file() else None
    if isinstance(found, dict) and found.get(_ROUNDS) == rounds:
        sizes, waiting = _resume_note(path, found)
        return {**sizes, _WAITING: waiting}
    return {**{name: synced_size(folder / name) for name in (METRICS, EVALUATIONS)}, _WAITING: []}


def _resume_note(path: Path, note: dict[str, Any]) -> tuple[dict[str, int], list[Record]]:
    """The sizes of the appended files when a checkpoint was written, and the records that were not yet in them."""
    sizes, waiting = {name: note.get(name) for name in (METRICS, EVALUATIONS)}, note.get(_WAITING)
    if any(type(size) is not int or size < 0 for size in sizes.values()) or not _are_records(waiting):
        raise ValueError(f"{path} holds an agent, but not what is needed to resume a run: it was not written as that.")
    return sizes, waiting  # type: ignore[return-value]


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(record, dict)
        and all(type(number) in (int, float) for number in record.values())
        and all(name in record for name in ("episodes", "return", "discounted_return"))
        for record in value
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no run: there is no {CONFIG} in it.")
    try:
        found = parse_json(path.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} does not describe a steadyrl run.")
    return found


def change_config(folder: Path, entries: dict[str, Any]) -> None:
    """Set entries of a run's config, or remove those that are None; written only if it changes."""
    found = read_config(folder)
    changed = {name: value for name, value in (found | entries).items() if name not in entries or value is not None}
    if changed != found:
        write_atomic(folder / CONFIG, json.dumps(changed, indent=2).encode())


def read_metrics(folder: Path, file: str = METRICS) -> list[Record]:
    """The records of a run, or its EVALUATIONS, in order; an error for a line that is none."""
    records = []
    for number, line in enumerate((folder / file).read_text(errors="replace").splitlines(), start=1):
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise ValueError(f"{folder / file}: line {number} is not a record.")
        records.append(record)
    return records


def read_agent(path: Path) -> checkpoint.AgentFile:
    """The agent in a file; or in a run folder the one at the end, or else at the latest checkpoint."""
    if not path.is_dir():
        return checkpoint.read(path)
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):  # A run in training has just replaced it.
            return checkpoint.read(agent_file(path))
        time.sleep(0.02)
    below = sorted(str(found.parent) for found in path.rglob(CHECKPOINT))
    hint = f" Did you mean {' or '.join(below[:3])}?" if below else ""
    raise FileNotFoundError(f"{path} holds no trained agent: there is no {CHECKPOINT} in it.{hint}")


def agent_file(folder: Path) -> Path:
    """The agent at the end of the run in a folder, or else its latest checkpoint."""
    resumable = resume_files(folder)
    last = folder / CHECKPOINT
    return resumable[max(resumable)] if resumable and not last.is_file() else last
