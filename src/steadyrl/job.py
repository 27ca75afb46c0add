"""A job: runs that one process trains, from their folders to their folders.

Mostly a single run. Where environment and agent fit into one compiled program, seeds learn together in it and are one
job. What comes of a job depends on what its fields say, not on where it is done, nor on how often it was broken off.
"""

from __future__ import annotations

import dataclasses
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, Agent
from steadyrl.checkpoints import SECONDS, Checkpoints
from steadyrl.envs.resolve import resolve
from steadyrl.episodes import FaultyEnvironmentError
from steadyrl.evaluation_curve import EvaluationCurve
from steadyrl.folder_lock import locked
from steadyrl.interrupts import BrokenOffError, uninterrupted
from steadyrl.progress import TellingProgress
from steadyrl.runs import ERROR, Run, config_of, is_complete, resume_files, state_of
from steadyrl.training import Listener, learn_together, rounds_of, rounds_per_record

Listening = Callable[[Sequence[Agent], Sequence[Run]], Sequence[Listener]]
"""Who else listens, once it is known which agents learn."""


@dataclass(frozen=True)
class Job:
    """What to train, for how long, and where it is kept."""

    env: str
    agent: str
    seeds: tuple[int, ...]
    folders: tuple[Path, ...]
    """One for each seed."""
    budget: dict[str, int]
    """How many "episodes" or "timesteps"."""
    title: str
    env_options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    engine: str = "auto"
    evaluations: dict[str, int] | None = None
    """Episodes learned from between evaluations ("every"), and played in each ("episodes")."""
    episodes_per_record: int = 1
    checkpoint_seconds: float = SECONDS
    lanes: int | None = None
    """Of the compiled program, if there is one; see `learn_together`."""
    threads: int | None = None
    """That compute where it is done; as many as this process has, unless it is said."""
    command: str = field(default_factory=lambda: " ".join(["steadyrl", *sys.argv[1:]]))
    """What the user typed."""

    def __post_init__(self) -> None:
        if not 0 <= self.checkpoint_seconds < float("inf"):
            raise ValueError(f"--checkpoint-every {self.checkpoint_seconds}: at least 0 seconds are needed.")

    def agents(self) -> list[Agent]:
        """The agents, which have learned nothing yet."""
        # A function rather than an environment: engines that play many at once can make more of it.
        make = partial(resolve, self.env, **self.env_options)
        return [AGENTS[self.agent](make, seed=seed, engine=self.engine, **self.settings) for seed in self.seeds]

    def config(self, agent: Agent) -> dict[str, Any]:
        """All that the result of an agent's run depends on."""
        told = {"evaluations": self.evaluations, "episodes_per_record": self.episodes_per_record}
        return {**config_of(agent, self.budget, self.lanes, self.threads), **told}

    def only(self, seeds: Sequence[int]) -> Job:
        """The part of these seeds."""
        folders = dict(zip(self.seeds, self.folders, strict=True))
        return dataclasses.replace(self, seeds=tuple(seeds), folders=tuple(folders[seed] for seed in seeds))

    def left(self, agent: Agent) -> list[Job]:
        """What is not complete, in parts that go on from the same round. `agent` is any of the job's."""
        config, parts = self.config(agent), dict[int, list[int]]()
        for seed, folder in zip(self.seeds, self.folders, strict=True):
            state = state_of(folder, {**config, "seed": seed})
            if state != "complete":
                rounds = max(resume_files(folder)) if state == "resumable" else 0
                parts.setdefault(rounds, []).append(seed)
        return [self.only(seeds) for seeds in parts.values()]


def carry_out(
    job: Job, listening: Listening = lambda agents, runs: (), at_checkpoint: Callable[[], None] | None = None
) -> list[Agent]:
    """Train what is not complete yet, from the last checkpoints on, and return its agents.

    If it is broken off, what was learned is kept, and the error says where. `at_checkpoint` is called when there is
    something new in the folders that would be enough to go on from.
    """
    agents = job.agents()
    check_budget(job, agents)  # Before there is a folder.
    with ExitStack() as stack:
        for folder in job.folders:
            stack.enter_context(locked(folder))
        return [agent for part in job.left(agents[0]) for agent in _train(part, listening, at_checkpoint)]


def check_budget(job: Job, agents: Sequence[Agent]) -> None:
    """An error if that is not how long agents can learn."""
    ((unit, total),) = job.budget.items()
    rounds_of(agents, **_budget(unit, total))


def _train(job: Job, listening: Listening, at_checkpoint: Callable[[], None] | None) -> list[Agent]:
    """All runs of a job, none of which is complete."""
    agents = job.agents()
    runs = _opened(job, agents)
    evaluating = [EvaluationCurve(runs, **job.evaluations)] if job.evaluations else []
    checkpoints = Checkpoints(runs, job.checkpoint_seconds, at_checkpoint)
    ((unit, total),) = job.budget.items()
    try:
        everyone: list[Listener] = [*runs, *evaluating, *listening(agents, runs), checkpoints]
        left = total - getattr(agents[0], unit)
        if left > 0:
            learn_together(agents, **_budget(unit, left), progress_bar=False, listeners=everyone, lanes=job.lanes)
        with uninterrupted():
            for evaluation in evaluating:
                evaluation.finish()
            for run in runs:
                run.finish()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(runs, checkpoints)) from None
    except Exception as error:
        raise BrokenOffError(f"{_told(error, job.env)} {_kept(runs, checkpoints, error)}") from error
    return agents


def carry_out_telling(job: Job, tell: Callable[[Any], None], at_checkpoint: Callable[[], None] | None = None) -> int:
    """`carry_out`, passing on how far it is; how many runs were trained."""
    ((unit, total),) = job.budget.items()
    return len(carry_out(job, lambda agents, runs: [TellingProgress(tell, unit, total, agents)], at_checkpoint))


def _budget(unit: str, total: int) -> dict[str, Any]:
    return {f"total_{name}": total if name == unit else None for name in ("timesteps", "episodes")}


def _opened(job: Job, agents: list[Agent]) -> list[Run]:
    """The runs as they were at their last checkpoints, which are of the same round, or anew."""
    every = max(1, job.episodes_per_record // (rounds_per_record(agents[0]) * agents[0].settings.n))
    runs = []
    for folder, agent in zip(job.folders, agents, strict=True):
        rounds = max(resume_files(folder), default=None)
        if rounds is None:
            runs.append(Run.begin(folder, agent, job.config(agent), every, job.command))
        else:
            runs.append(Run.resume(folder, agent, rounds, every))
    return runs


def _told(error: Exception, env: str) -> str:
    """What ended training, in one sentence that names the environment."""
    if isinstance(error, FaultyEnvironmentError | OSError):
        return str(error)
    said = f"{error}" if isinstance(error, ValueError | FloatingPointError) else f"{type(error).__name__}: {error}"
    return f"{env}: {said.rstrip('.')}."


def _kept(runs: Sequence[Run], checkpoints: Checkpoints, error: Exception | None = None) -> str:
    """Write checkpoints, and where an error came from; without anything learned, leave nothing behind."""
    first, problem = runs[0], ""
    if all(is_complete(run.folder) for run in runs):
        return f"The run in {first.folder} is complete."
    if not first.agent.episodes:
        for run in runs:
            run.discard()
            with suppress(OSError):  # Not empty, so not ours alone.
                run.folder.rmdir()
        return "Nothing had been learned yet." + (" STEADYRL_DEBUG=1 shows where." if error else "")
    try:
        checkpoints.write()
        for run in runs:
            run.save()
        if error:
            (first.folder / ERROR).write_text("".join(traceback.format_exception(error)))
    except OSError as failure:
        problem = "" if isinstance(error, OSError) else f" {failure}"
    rounds = max(resume_files(first.folder), default=None)
    if rounds is None:
        return f"There is no checkpoint to go on from.{problem}"
    until = f"in {first.agent.episodes:,} episodes" if rounds == first.agent.iterations else "until the last checkpoint"
    where = f", and where it failed in {ERROR} there" if (first.folder / ERROR).exists() else ""
    return f"What was learned {until} is saved in {first.folder}{where}.{problem} The same command goes on from there."
