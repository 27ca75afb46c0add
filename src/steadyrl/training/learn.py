"""`Agent.learn`: one agent, with callbacks, loggers and, if asked for, a run folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from steadyrl.base.signals import interruptible
from steadyrl.training import checkpoint
from steadyrl.training.algorithm import Trainee
from steadyrl.training.loggers import Logger, RunInfo, logger_class, open_loggers
from steadyrl.training.loop import Callback, Listener, asks_to_stop, count_rounds, learn_together
from steadyrl.training.progress import TrainingProgress
from steadyrl.training.run import Plan, train_runs
from steadyrl.training.run_files import CHECKPOINT
from steadyrl.training.run_folder import config_of


def learn(
    agent: Trainee,
    total_timesteps: int | None,
    total_episodes: int | None,
    *,
    callback: Callback | Sequence[Callback] | None,
    progress_bar: bool,
    loggers: Sequence[str | Logger],
    out: Path | None,
    extend: bool = False,
    keep_replay_buffer: bool = False,
) -> None:
    """See `Agent.learn`."""
    if out is None and (extend or keep_replay_buffer):
        option = "extend" if extend else "keep_replay_buffer"
        raise ValueError(f"{option}=True: it is about a run folder. Name one with out=....")
    count_rounds([agent], total_timesteps, total_episodes)
    loggers = [loggers] if isinstance(loggers, str) else list(loggers)
    for name in loggers:
        if isinstance(name, str):
            logger_class(name)  # An unknown one, or a missing package, is reported before there is a folder.
    total = total_timesteps if total_timesteps is not None else total_episodes
    budget = {"timesteps" if total_timesteps is not None else "episodes": int(total or 0)}
    merged = merge_callbacks(callback)
    if out is not None:
        with interruptible():
            plan = Plan(budget, command=" ".join(sys.argv), extend=extend, keep_replay_buffer=keep_replay_buffer)
            _learn_in_folder(agent, plan, out, merged, progress_bar, loggers)
        return
    info = RunInfo(f"{agent.name}-seed{agent.seed}", None, config_of(agent, budget))
    with interruptible(), open_loggers(loggers, [info], [agent]) as listeners:
        learn_together(
            [agent],
            total_timesteps,
            total_episodes=total_episodes,
            callback=merged,
            progress_bar=progress_bar,
            listeners=listeners,
        )


def _learn_in_folder(
    agent: Trainee,
    plan: Plan,
    out: Path,
    callback: Callback | None,
    progress_bar: bool,
    loggers: Sequence[str | Logger],
) -> None:
    if agent.iterations:
        raise ValueError(
            f"out={out}: a run folder records training from its start, and this agent has already learned from "
            f"{agent.episodes:,} episodes. Make a new agent, or call learn without out."
        )
    out = out.absolute()  # An environment may change the current folder.
    with ExitStack() as stack:

        def listeners(agents: Sequence[Trainee], runs: Sequence[Any]) -> list[Listener]:
            info = RunInfo(out.name, out, plan.config(agent))
            mine: list[Listener] = list(stack.enter_context(open_loggers(loggers, [info], agents)))
            if progress_bar:
                done = getattr(agent, plan.unit)
                bar = TrainingProgress(agent.name, plan.unit, plan.total, agents, done)
                mine.append(stack.enter_context(bar))
            return mine

        trained = train_runs([agent], [out], plan, listeners, callback)
    if not trained:  # The run is complete.
        checkpoint.restore(agent, checkpoint.read(out / CHECKPOINT))


def merge_callbacks(callback: Callback | Sequence[Callback] | None) -> Callback | None:
    """One callback that calls several, and stops if one of them returns False."""
    if callback is None or callable(callback):
        return callback
    several = list(callback)

    def call_all(local: dict[str, Any], world: dict[str, Any]) -> bool:
        answers = [each(local, world) for each in several]
        return not any(asks_to_stop(answer) for answer in answers)

    return call_all if several else None
