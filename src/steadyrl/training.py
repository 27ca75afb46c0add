"""The loop around every agent: rounds of collecting and updating, and what is told of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.checkpoint import describe_env
from steadyrl.engines import EPISODES_PER_RECORD, CompiledEngine, Engine, HostEngine, Rounds
from steadyrl.interrupts import uninterrupted
from steadyrl.progress import TrainingProgress
from steadyrl.replay_engine import ReplayEngine
from steadyrl.risk import gini_deviation, variance
from steadyrl.rollout import finite_face

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent, Callback

Metrics = dict[str, Any]

Listener = Callable[[Sequence["Agent"], Sequence[Sequence[Metrics]]], None]
"""`listener(agents, metrics)`, with the metrics of the latest rounds of each agent."""


def learn_together(
    agents: Sequence[Agent],
    total_timesteps: int | None = None,
    *,
    total_episodes: int | None = None,
    callback: Callback | None = None,
    progress_bar: bool = True,
    listeners: Sequence[Listener] = (),
    lanes: int | None = None,
) -> None:
    """Teach agents that differ in their seeds alone, all at once where the engine can; see `Agent.learn`.

    A compiled program has so many `lanes`, 1 for one agent and else 5; the last bits of what is learned depend on it.

    Example: `learn_together([MeanGini(env, seed=s) for s in range(10)], total_episodes=50_000)`.
    """
    rounds = rounds_of(agents, total_timesteps, total_episodes)
    first = agents[0]
    groups = [list(agents)] if first.engine == "compiled" else [[agent] for agent in agents]
    with ExitStack() as stack:
        everyone = list(listeners)
        if progress_bar:
            target = total_timesteps or rounds * first.settings.n
            unit = "timesteps" if total_timesteps else "episodes"
            everyone.append(stack.enter_context(TrainingProgress(first.name, unit, target, agents)))
        for group in groups:
            _learn(group, engine_of(group, lanes), rounds, total_timesteps, callback, everyone)


def _learn(
    agents: list[Agent],
    engine: Engine,
    rounds: int,
    total_timesteps: int | None,
    callback: Callback | None,
    listeners: Sequence[Listener],
) -> None:
    per_record = rounds_per_record(agents[0])
    # A callback may stop after any record, so then they come one by one; the program and its bits are the same.
    stride = per_record if callback else max(engine.most_rounds // per_record, 1) * per_record
    stride = min(stride, engine.most_rounds)
    learners = jax.tree.map(lambda *x: jnp.stack(x), *(agent.learner for agent in agents))
    steps_left = total_timesteps if total_timesteps is not None else np.iinfo(np.int64).max
    while rounds > 0 and steps_left > 0:
        with _remembered(agents) as remember:
            learners, done = engine.advance(learners, agents[0].iterations, min(stride, rounds), steps_left)
            with uninterrupted():  # Agents, and what listeners know of them, are always at the same round.
                metrics = [_record(agent, k, learners, done, per_record) for k, agent in enumerate(agents)]
                remember()
                for listener in listeners:
                    listener(agents, metrics)
        rounds -= len(done.updates)
        steps_left -= int(done.lengths[:, 0].sum())
        if callback and any([_asks_to_stop(callback, a, m[-1]) for a, m in zip(agents, metrics, strict=True)]):
            return


@contextmanager
def _remembered(agents: list[Agent]) -> Iterator[Callable[[], None]]:
    """Rounds that do not get as far as to `remember` are forgotten, and can be played again."""
    kept = {agent.memory: agent.memory.keep() for agent in agents if agent.memory is not None}
    try:
        yield kept.clear
    except BaseException:
        for memory, before in kept.items():
            memory.forget_since(before)
        raise


def engine_of(agents: list[Agent], lanes: int | None = None) -> Engine:
    """What takes these agents through their rounds; see `learn_together`."""
    if agents[0].algorithm.material == "replayed":
        return ReplayEngine(agents)
    if agents[0].engine == "compiled":
        return CompiledEngine(agents, lanes or (1 if len(agents) == 1 else CompiledEngine.LANES))
    return HostEngine(agents)


def rounds_per_record(agent: Agent) -> int:
    """How many rounds make a record; see `EPISODES_PER_RECORD`."""
    # Between updates at every few steps, a single episode is long.
    return 1 if agent.algorithm.material == "replayed" else max(1, EPISODES_PER_RECORD // agent.settings.n)


def _record(agent: Agent, k: int, learners: Any, rounds: Rounds, per_record: int) -> list[Metrics]:
    """Move agent k to where its learner is now, and say what its rounds were like, `per_record` of them at a time."""
    agent.learner = jax.tree.map(lambda x: x[k], learners)
    mine = jax.tree.map(lambda x: x[:, k], rounds)
    whole = len(mine.updates) // per_record * per_record
    latest = _told(agent, jax.tree.map(lambda x: x[:whole], mine), per_record)
    # What is left at the end of a budget makes a shorter record.
    latest += _told(agent, jax.tree.map(lambda x: x[whole:], mine), len(mine.updates) - whole)
    agent.history.extend(latest)
    return latest


def _told(agent: Agent, rounds: Rounds, per_record: int) -> list[Metrics]:
    """The records of rounds [c, n], all computed at once."""
    records = len(rounds.updates) // per_record if per_record else 0
    if not records:
        return []
    told: Rounds = jax.tree.map(lambda x: np.asarray(x, np.float64).reshape(records, -1), rounds)
    episodes, timesteps = told.lengths.shape[1], told.lengths.sum(axis=1)
    columns = {
        "return": told.returns.mean(axis=1),
        "discounted_return": told.discounted_returns.mean(axis=1),
        **(spreads(told.returns, told.discounted_returns) if episodes > 1 else {}),
        "length": told.lengths.mean(axis=1),
        **{name: value.mean(axis=1) for name, value in told.facts.items()},
        "updates": told.updates.mean(axis=1),
        **{name: value.sum(axis=1) for name, value in told.work.items()},
    }
    latest = []
    for r in range(records):
        agent.iterations += per_record
        agent.episodes += episodes
        agent.timesteps += int(timesteps[r])
        counts = {"iteration": agent.iterations, "episodes": agent.episodes, "timesteps": agent.timesteps}
        means = {name: float(column[r]) for name, column in columns.items()}
        latest.append({**counts, **means, "time": round(time.time(), 3)})
    return latest


def spreads(returns: Any, discounted_returns: Any) -> Metrics:
    """How far the returns of at least two episodes lie apart, by name; over the last axis."""
    measures = {"gini_deviation": gini_deviation, "variance": variance}
    discounted = {name: measure(discounted_returns) for name, measure in measures.items()}
    return discounted | {f"undiscounted_{name}": measure(returns) for name, measure in measures.items()}


def _asks_to_stop(callback: Callback, agent: Agent, metrics: Metrics) -> bool:
    answer = callback({"self": agent, "num_timesteps": agent.timesteps, "metrics": metrics}, {})
    return isinstance(answer, bool | np.bool_) and not answer


def rounds_of(agents: Sequence[Agent], total_timesteps: int | None, total_episodes: int | None) -> int:
    """The number of rounds in a budget, or an error if it is none; for timesteps, more than they can last for."""
    if not agents:
        raise ValueError("learn_together: pass at least one agent.")
    first = agents[0]
    for agent in agents:
        if agent.env is None:
            raise ValueError("this agent has no environment to learn in: load it with load(path, env=...).")
        if _all_but_seed(agent) != _all_but_seed(first):
            raise ValueError("learn_together: agents learn together if they differ in their seeds alone.")
    if (total_timesteps is None) == (total_episodes is None):
        raise ValueError("learn: say how long, either total_timesteps=... or total_episodes=..., one of the two.")
    if total_timesteps is not None and len(agents) > 1:
        raise ValueError("learn_together: several agents learn for total_episodes=..., not total_timesteps.")
    total = total_timesteps if total_timesteps is not None else total_episodes
    if isinstance(total, bool) or not isinstance(total, int | np.integer) or total < 1:
        raise ValueError(f"learn: {total!r} timesteps or episodes: a whole number of at least 1 is needed.")
    return int(total) if total_timesteps is not None else -(-int(total) // first.settings.n)


def _all_but_seed(agent: Agent) -> tuple[Any, ...]:
    assert agent.env is not None
    world = finite_face(agent.env) if agent.engine == "compiled" else describe_env(agent.env)
    return type(agent), agent.settings, agent.engine, agent.iterations, world
