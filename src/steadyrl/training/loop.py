"""The training loop: budgets, rounds, records of metrics, listeners and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import jax
import numpy as np

from steadyrl.base.shown import shown
from steadyrl.base.signals import defer_signals
from steadyrl.envs.description import describe_env
from steadyrl.envs.finite import finite_model
from steadyrl.envs.jax_env import jax_model
from steadyrl.rollouts.simulators.choose import IN_PROGRAMS
from steadyrl.training.algorithm import Trainee
from steadyrl.training.engines.compiled import CompiledEngine
from steadyrl.training.engines.engine import EPISODES_PER_RECORD, Engine
from steadyrl.training.engines.host import HostEngine
from steadyrl.training.engines.jax_env import JaxEngine
from steadyrl.training.engines.online import OnlineEngine
from steadyrl.training.engines.program import VMAP_WIDTH
from steadyrl.training.engines.replay import ReplayEngine
from steadyrl.training.progress import TrainingProgress
from steadyrl.training.records import Record, take_over
from steadyrl.training.schedule import CONSTANT, Schedule

MAX_TOTAL = 2**53
"""Timesteps or episodes: above it, not every whole number is a float."""

Listener = Callable[[Sequence[Trainee], Sequence[Sequence[Record]]], None]
"""`listener(agents, records)`, with the records of the latest rounds of each agent.

Training stops when an attribute `stop_reason` of it is not None.
"""

Callback = Callable[[dict[str, Any], dict[str, Any]], Any]
"""`callback(locals, globals)`, as in Stable-Baselines3: `locals["self"]` is the agent, and only False stops."""


def learn_together(
    agents: Sequence[Trainee],
    total_timesteps: int | None = None,
    *,
    total_episodes: int | None = None,
    callback: Callback | None = None,
    progress_bar: bool = True,
    listeners: Sequence[Listener] = (),
    vmap_width: int | None = None,
    budget: dict[str, int] | None = None,
) -> None:
    """Train agents that differ in their seeds, and in numbers such as risk_aversion, alone; see `Agent.learn`.

    In a finite environment, and in one written in JAX, they are trained in one compiled program, which holds
    `vmap_width` of them (1 for one agent, else 5; the last bits of the result depend on it). Elsewhere they are trained
    one after the other.

    Learning-rate schedules run over what is trained here, or over a whole `budget` of "episodes" or "timesteps", of
    which this is the rest.

    Example: `learn_together([MeanGini(env, seed=s) for s in range(10)], total_episodes=50_000)`.
    """
    rounds = count_rounds(agents, total_timesteps, total_episodes)
    first = agents[0]
    groups = [list(agents)] if first.engine in IN_PROGRAMS else [[agent] for agent in agents]
    with ExitStack() as stack:
        all_listeners = list(listeners)
        if progress_bar:
            target = total_timesteps or rounds * first.settings.n
            unit = "timesteps" if total_timesteps else "episodes"
            all_listeners.append(stack.enter_context(TrainingProgress(first.name, unit, target, agents)))
        schedule = _schedule(first, budget, total_timesteps, total_episodes)
        for group in groups:
            with closing(make_engine(group, vmap_width, schedule)) as engine:
                _learn(group, engine, rounds, total_timesteps, callback, all_listeners)


def _learn(
    agents: list[Trainee],
    engine: Engine,
    rounds: int,
    total_timesteps: int | None,
    callback: Callback | None,
    listeners: Sequence[Listener],
) -> None:
    per_record = rounds_per_record(agents[0])
    # Where training may stop after any record, they come one by one; the program and its bits are the same.
    may_stop = callback or any(hasattr(listener, "stop_reason") for listener in listeners)
    stride = per_record if may_stop else max(engine.max_rounds // per_record, 1) * per_record
    stride = min(stride, engine.max_rounds)
    steps_left = total_timesteps if total_timesteps is not None else np.iinfo(np.int64).max
    while rounds > 0 and steps_left > 0:
        with _rollback_on_error(agents) as commit:
            results = engine.advance(min(stride, rounds), steps_left)
            with defer_signals():  # Agents, and what listeners know of them, are always at the same round.
                records = [take_over(agent, *result, per_record) for agent, result in zip(agents, results, strict=True)]
                commit()
                for listener in listeners:
                    listener(agents, records)
        _, done = results[0]
        rounds -= len(done.lengths)
        steps_left -= int(done.lengths.sum())
        if callback and any([_stops(callback, a, r[-1]) for a, r in zip(agents, records, strict=True)]):
            return
        if stop_reason(listeners):
            return


@contextmanager
def _rollback_on_error(agents: list[Trainee]) -> Iterator[Callable[[], None]]:
    """Rounds that are not committed are removed from the replay buffers, and can be played again."""
    committed = {a.replay_buffer: a.replay_buffer.commit() for a in agents if a.replay_buffer is not None}
    try:
        yield committed.clear
    except BaseException:
        for replay_buffer, added in committed.items():
            replay_buffer.rollback(added)
        raise


def _schedule(
    agent: Trainee, budget: dict[str, int] | None, total_timesteps: int | None, total_episodes: int | None
) -> Schedule:
    """The learning-rate schedule of agents that are trained together; that of a whole budget begins at 0."""
    kind = agent.settings.learning_rate_schedule
    if kind == "constant":
        return CONSTANT
    if budget is not None:
        ((unit, total),) = budget.items()
        return Schedule(kind, unit, 0, total)
    if total_timesteps is not None:
        return Schedule(kind, "timesteps", agent.timesteps, int(total_timesteps))
    # Engines count rounds: an agent that came from elsewhere has episodes that were not played in any.
    return Schedule(kind, "episodes", agent.iterations * agent.settings.n, int(total_episodes or 1))


def make_engine(agents: list[Trainee], vmap_width: int | None = None, schedule: Schedule = CONSTANT) -> Engine:
    """The engine that trains these agents; see `learn_together`."""
    first = agents[0]
    if first.engine in IN_PROGRAMS and first.algorithm.batch_kind not in ("replay", "online"):
        kind = JaxEngine if first.engine == "jax" else CompiledEngine
        return kind(agents, vmap_width or (1 if len(agents) == 1 else VMAP_WIDTH), schedule)
    (agent,) = agents
    if agent.algorithm.batch_kind == "replay":
        return ReplayEngine(agent, schedule)
    if agent.algorithm.batch_kind == "online":
        return OnlineEngine(agent, schedule)
    return HostEngine(agent, schedule)


def rounds_per_record(agent: Trainee) -> int:
    """How many rounds make a record; see `EPISODES_PER_RECORD`."""
    # With updates every few steps, a single episode is long.
    return 1 if agent.algorithm.batch_kind == "replay" else max(1, EPISODES_PER_RECORD // agent.settings.n)


def _stops(callback: Callback, agent: Trainee, record: Record) -> bool:
    return asks_to_stop(callback({"self": agent, "num_timesteps": agent.timesteps, "metrics": record}, {}))


def stop_reason(listeners: Sequence[Any]) -> str | None:
    """Why a listener asks to stop, if one does."""
    return next((reason for listener in listeners if (reason := getattr(listener, "stop_reason", None))), None)


def asks_to_stop(answer: Any) -> bool:
    """Whether a callback returned False; None, 0 and the like do not stop training."""
    return isinstance(answer, bool | np.bool_) and not answer


def count_rounds(agents: Sequence[Trainee], total_timesteps: int | None, total_episodes: int | None) -> int:
    """The number of rounds in a budget, or an error if it is none; for timesteps, an upper bound."""
    if not agents:
        raise ValueError("learn_together: pass at least one agent.")
    first = agents[0]
    for agent in agents:
        if agent.env is None:
            raise ValueError("this agent has no environment to learn in: load it with load(path, env=...).")
        if agent.policy_only:
            raise ValueError(
                "this agent was saved with its policy alone, which acts but cannot learn. Load it from a run folder, "
                "or from a file that was saved without policy_only."
            )
        if program_of(agent) != program_of(first):
            raise ValueError(
                "learn_together: agents learn together if they differ in their seeds and in numbers such as "
                "risk_aversion alone, not in what a program is compiled for."
            )
    if (total_timesteps is None) == (total_episodes is None):
        raise ValueError("learn: give total_timesteps=... or total_episodes=..., one of the two.")
    if total_timesteps is not None and len(agents) > 1:
        raise ValueError("learn_together: several agents learn for total_episodes=..., not total_timesteps.")
    total = total_timesteps if total_timesteps is not None else total_episodes
    if isinstance(total, bool) or not isinstance(total, int | np.integer) or total < 1:
        raise ValueError(f"learn: {shown(total)} timesteps or episodes: a whole number of at least 1 is needed.")
    if total > MAX_TOTAL:
        raise ValueError(f"learn: {shown(int(total), 40)} timesteps or episodes: at most 2**53 can be counted.")
    return int(total) if total_timesteps is not None else -(-int(total) // first.settings.n)


def program_of(agent: Trainee) -> tuple[Any, ...]:
    """What agents that are trained together have in common."""
    world: Any = finite_model(agent.env) if agent.engine == "compiled" else describe_env(agent.env)
    if (
        agent.engine == "jax"
    ):  # Named, it is made anew for each agent; objects of the user's say whether they are equal.
        world = jax_model(agent.env) if world is None else repr(world)
    return type(agent), jax.tree.structure(agent.algorithm), agent.engine, agent.iterations, world
