"""Training that lives in run folders: begun or resumed, checkpointed, and interrupted without loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrl.base.files import lock_folder
from steadyrl.base.signals import TrainingInterruptedError, defer_signals
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.training.algorithm import Trainee
from steadyrl.training.checkpoint_timer import SECONDS, CheckpointTimer
from steadyrl.training.early_stopping import EarlyStopping
from steadyrl.training.engines.engine import DivergedError
from steadyrl.training.extension import extend_run
from steadyrl.training.loop import Callback, Listener, count_rounds, learn_together, rounds_per_record, stop_reason
from steadyrl.training.run_files import ERROR, has_error, remove_leftovers, resume_files, write_error
from steadyrl.training.run_folder import Run, config_of, is_complete, state_of


@dataclass(frozen=True)
class Plan:
    """How long to train, and how that is recorded."""

    budget: dict[str, int]
    """How many "episodes" or "timesteps"."""
    episodes_per_record: int = 1
    checkpoint_seconds: float = SECONDS
    evaluations: dict[str, int] | None = None
    """Training episodes between evaluations ("every"), and episodes played in each ("episodes")."""
    early_stopping: EarlyStopping | None = None
    """When to stop before the budget is used up, by the scores of `evaluations`."""
    vmap_width: int | None = None
    """Of the compiled program, if there is one; see `learn_together`."""
    threads: int | None = None
    """Threads that compute; by default as many as this process may use."""
    command: str = ""
    """What the user typed."""
    extend: bool = False
    """Whether a run with a smaller budget in the folder is extended to this one, rather than refused."""
    keep_replay_buffer: bool = False
    """Whether the agent at the end is saved with its replay buffer, so that the run can be extended later."""

    def __post_init__(self) -> None:
        if not 0 <= self.checkpoint_seconds < float("inf"):
            raise ValueError(f"--checkpoint-every {self.checkpoint_seconds}: at least 0 seconds are needed.")
        if self.early_stopping is not None and self.evaluations is None:
            raise ValueError("early stopping: it is decided by evaluations. Say how often to evaluate.")

    @property
    def unit(self) -> str:
        """Either "episodes" or "timesteps"."""
        return next(iter(self.budget))

    @property
    def total(self) -> int:
        """How many of them."""
        return self.budget[self.unit]

    def config(self, agent: Trainee) -> dict[str, Any]:
        """Everything the result of an agent's run depends on."""
        recording: dict[str, Any] = {
            "evaluations": self.evaluations,
            "episodes_per_record": self.episodes_per_record,
        }
        if self.early_stopping is not None:
            recording["early_stopping"] = dataclasses.asdict(self.early_stopping)
        return {**config_of(agent, self.budget, self.vmap_width, self.threads), **recording}

    def check(self, agents: Sequence[Trainee]) -> None:
        """An error if agents cannot learn for that long."""
        count_rounds(agents, **self.remaining(0))

    def remaining(self, done: int) -> dict[str, Any]:
        """The rest of the budget, as arguments of `learn_together`."""
        return {f"total_{unit}": self.total - done if unit == self.unit else None for unit in ("timesteps", "episodes")}


def train_runs(
    agents: Sequence[Trainee],
    folders: Sequence[Path],
    plan: Plan,
    listeners: Callable[[Sequence[Trainee], Sequence[Run]], Sequence[Listener]] = lambda agents, runs: (),
    callback: Callback | None = None,
    at_checkpoint: Callable[[], None] | None = None,
) -> list[Trainee]:
    """Train untrained agents, each in its folder, from the last checkpoint if there is one; returns those trained.

    Complete runs are not touched. If training is interrupted, everything learned is saved and the error says where. If
    some agents diverge, the others are trained to the end nevertheless. `listeners` are made once it is known which
    agents are trained; those with a method `finish` have it called when the budget is used up. `at_checkpoint` is
    called when the folders hold something new to resume from.
    """
    plan.check(agents)  # Before there is a folder.
    folders = [folder.absolute() for folder in folders]  # An environment may change the current folder.
    made_here = [folder for folder in folders if not folder.exists()]
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(lock_folder(folder))
        stack.callback(_remove_if_empty, made_here)
        trained: list[Trainee] = []
        if plan.extend:
            for agent, folder in zip(agents, folders, strict=True):
                extend_run(folder, agent, plan.config(agent), plan.command)
        for part in _by_round(agents, folders, plan):
            _train_all_but_diverging(part, plan, listeners, callback, at_checkpoint)
            trained += [agent for agent, _ in part]
        return trained


def pending_round(folder: Path, config: dict[str, Any]) -> int | None:
    """The round after which the run of this config is to be resumed, 0 for the start; None if it is complete.

    A complete run whose process was killed before it had removed what it no longer needs is rid of that.
    """
    state = state_of(folder, config)
    if state == "complete":
        remove_leftovers(folder)
        return None
    return max(resume_files(folder)) if state == "resumable" else 0


def _by_round(agents: Sequence[Trainee], folders: Sequence[Path], plan: Plan) -> Iterator[list[tuple[Trainee, Path]]]:
    """What is not complete, in parts that are resumed from the same round."""
    parts: dict[int, list[tuple[Trainee, Path]]] = {}
    for agent, folder in zip(agents, folders, strict=True):
        rounds = pending_round(folder, plan.config(agent))
        if rounds is not None:
            parts.setdefault(rounds, []).append((agent, folder))
    return iter(parts.values())


def _remove_if_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # Not empty.
            folder.rmdir()


def _train_all_but_diverging(part: list[tuple[Trainee, Path]], *how: Any) -> None:
    """`_train`; if some of the agents diverge, the others are trained without them before the error is raised."""
    try:
        _train(part, *how)
    except TrainingInterruptedError as error:
        diverged = error.__cause__.agents if isinstance(error.__cause__, DivergedError) else ()
        others = [(agent, folder) for agent, folder in part if agent not in diverged]
        if not diverged or not others:
            raise
        try:
            _train_all_but_diverging(others, *how)
        except TrainingInterruptedError as another:
            raise TrainingInterruptedError(f"{error} {another}") from error
        raise


def _with_run(callback: Callback, runs: Sequence[Run]) -> Callback:
    """The callback, with the run folder of the agent as `locals["run"]`."""
    folders = {id(run.agent): run for run in runs}
    return lambda local, world: callback({**local, "run": folders[id(local["self"])]}, world)


def _train(
    part: list[tuple[Trainee, Path]],
    plan: Plan,
    listeners: Callable[[Sequence[Trainee], Sequence[Run]], Sequence[Listener]],
    callback: Callback | None,
    at_checkpoint: Callable[[], None] | None,
) -> None:
    """Train runs that are all at the same round."""
    agents = [agent for agent, _ in part]
    runs = [_open(agent, folder, plan) for agent, folder in part]
    checkpoints = CheckpointTimer(runs, plan.checkpoint_seconds, at_checkpoint)
    try:
        extra = list(listeners(agents, runs))
        done = getattr(agents[0], plan.unit)
        if done < plan.total and stop_reason(extra) is None:
            learn_together(
                agents,
                **plan.remaining(done),
                callback=callback and _with_run(callback, runs),
                progress_bar=False,
                listeners=[*runs, *extra, checkpoints],
                vmap_width=plan.vmap_width,
                budget=plan.budget,
            )
        with defer_signals():
            early = getattr(agents[0], plan.unit) < plan.total
            reason = stop_reason(extra) or runs[0].why_stopped or "a callback returned False"
            for run in runs:
                run.begin_end()
            for listener in extra:
                if hasattr(listener, "finish"):
                    listener.finish()
            for run in runs:
                run.finish(reason if early else None, plan.keep_replay_buffer)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_save(runs, checkpoints)) from None
    except Exception as error:
        if isinstance(error, DivergedError):  # The folder that is named, and has the traceback, is one of theirs.
            diverged = error.agents
            runs.sort(key=lambda run: run.agent not in diverged)
        raise TrainingInterruptedError(f"{_reason(error, agents[0])} {_save(runs, checkpoints, error)}") from error


def _open(agent: Trainee, folder: Path, plan: Plan) -> Run:
    """The run as it was at its last checkpoint, or a new one."""
    every = max(1, plan.episodes_per_record // (rounds_per_record(agent) * agent.settings.n))
    rounds = max(resume_files(folder), default=None)
    if rounds is None:
        return Run.begin(folder, agent, plan.config(agent), every, plan.command)
    return Run.resume(folder, agent, rounds, every)


def _reason(error: Exception, agent: Trainee) -> str:
    """What ended training, in one sentence that names the environment."""
    if isinstance(error, FaultyEnvironmentError | OSError):
        return str(error)
    text = f"{error}" if isinstance(error, ValueError | FloatingPointError) else f"{type(error).__name__}: {error}"
    return f"{agent.env_name}: {text.rstrip('.')}."


def _save(runs: Sequence[Run], checkpoints: CheckpointTimer, error: Exception | None = None) -> str:
    """Write checkpoints and the traceback of an error; if nothing was learned, remove everything."""
    first, problem = runs[0], ""
    if all(is_complete(run.folder) for run in runs):
        return f"The run in {first.folder} is complete."
    if not first.agent.episodes:
        for run in runs:
            run.discard()
        return "Nothing had been learned yet." + (" STEADYRL_DEBUG=1 shows where." if error else "")
    try:
        checkpoints.write()
        for run in runs:
            run.save()
        if error:
            write_error(first.folder, error)
    except OSError as failure:
        problem = "" if isinstance(error, OSError) else f" {failure}"
    rounds = max(resume_files(first.folder), default=None)
    if rounds is None:
        return f"There is no checkpoint to resume from.{problem}"
    until = f"in {first.agent.episodes:,} episodes" if rounds == first.agent.iterations else "until the last checkpoint"
    where = f", and the traceback in {ERROR} there" if has_error(first.folder) else ""
    return f"What was learned {until} is saved in {first.folder}{where}.{problem} The same command resumes from there."
