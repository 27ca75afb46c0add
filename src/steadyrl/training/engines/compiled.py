"""The engine of finite environments: collecting and updating inside one compiled program, several agents at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.machine import usable_cores
from steadyrl.base.seeding import Stream, stream_key
from steadyrl.envs.finite import EpisodeMetrics, finite_model
from steadyrl.rollouts.compiled import Plays, Tables, play, rewards_of
from steadyrl.training.algorithm import Learner, Trainee
from steadyrl.training.batch import batch_from_plays
from steadyrl.training.dial import dial_of
from steadyrl.training.engines.engine import Rounds, as_arrays, check_finite
from steadyrl.training.engines.limits import check_model
from steadyrl.training.returns import discount_factors
from steadyrl.training.transitions import transitions_from_plays

VMAP_WIDTH = 5
"""Agents in one call of the program where several are trained together."""


class CompiledEngine:
    """An `Engine` for agents that differ in their seeds and in the numbers of their settings alone.

    A call of the program trains `vmap_width` agents. More agents take several calls, which share the cores; unused
    slots compute something that is thrown away. The bits of a run depend on the width, but not on its slot, on the
    other agents or on the number of cores.
    """

    def __init__(self, agents: Sequence[Trainee], vmap_width: int) -> None:
        self._agents, settings = agents, agents[0].settings
        model = finite_model(agents[0].env)
        assert model is not None
        check_model(agents[0], model)
        self._metrics, self._horizon = model.metrics, model.mdp.horizon
        self._tables = Tables.of(model.mdp)
        self._calls = _assign_slots(len(agents), vmap_width)
        constants = (
            _stack([as_arrays(agent.algorithm) for agent in agents]),
            jnp.stack([stream_key(agent.seed, Stream.EPISODES) for agent in agents]),
            np.stack([discount_factors(agent.settings.gamma, self._horizon) for agent in agents]).astype(np.float32),
        )
        self._constants = [_select(constants, call) for call in self._calls]
        # The position of each agent among the slots of all calls.
        self._positions = [np.concatenate(self._calls).tolist().index(k) for k in range(len(agents))]
        self._compiled = False
        # Results are fetched about once in 1,000 episodes: often enough to watch, too rarely to cost.
        self.max_rounds = max(1, 1000 // settings.n)

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """See `Engine`."""
        learners, first = _stack([agent.learner for agent in self._agents]), self._agents[0].iterations
        limit = min(timesteps, np.iinfo(np.int32).max)

        def run(call: Any, constants: Any) -> tuple[Learner, Rounds]:
            moved, rounds, done = _compiled_rounds(
                self._metrics, self._horizon, self.max_rounds, self._tables, constants, _select(learners, call),
                first, count, limit,
            )  # fmt: skip
            return moved, jax.tree.map(lambda x: np.asarray(x)[: int(done)], rounds)

        # Threads suffice: a compiled program runs without the GIL. The first time, one of them compiles for all.
        with ThreadPoolExecutor(usable_cores() if self._compiled else 1) as threads:
            moved, rounds = zip(*threads.map(run, self._calls, self._constants), strict=True)
        self._compiled = True
        learners = jax.tree.map(lambda *x: jnp.concatenate(x), *moved)
        rounds = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *rounds)
        results = [
            (_select(learners, position), jax.tree.map(lambda x, p=position: x[:, p], rounds))
            for position in self._positions
        ]
        check_finite(self._agents, results)
        return results

    def close(self) -> None:
        """There is no simulator."""


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def _select(tree: Any, which: Any) -> Any:
    return jax.tree.map(lambda x: x[which], tree)


def _assign_slots(agents: int, width: int) -> list[Any]:
    """For each call of the program the index of the agent in each slot; an unused slot repeats the last agent."""
    slots = np.arange(-(-agents // width) * width).clip(max=agents - 1)
    return list(slots.reshape(-1, width))


def _round(
    metrics: EpisodeMetrics, horizon: int, tables: Tables, constants: Any, learners: Learner, k: Array
) -> tuple[Learner, Rounds]:
    """Round `k` of K agents: act, collect, make the batch, update, record."""
    algorithms, keys, discounts = constants
    n = algorithms.settings.n
    episodes = k * n + jnp.arange(n)
    episode_keys = jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(episodes))(keys)
    if dial_of(algorithms) is None:
        levels = None
        policies = jax.vmap(lambda algorithm, learner: algorithm.exploring_table(learner))(algorithms, learners)
        plays = play(tables, policies, episode_keys, horizon)
    else:
        levels, plays = _play_groups(tables, horizon, algorithms, learners, episode_keys, k)
    batch = batch_from_plays(tables, plays, algorithms.settings.gamma, levels)
    given = transitions_from_plays(tables, plays, discounts) if algorithms.batch_kind == "transitions" else batch
    update: Any = jax.vmap(lambda algorithm, learner, given: algorithm.update(learner, given))
    learners, update_metrics = update(algorithms, learners, given)
    rounds = Rounds(
        returns=rewards_of(tables, plays).sum(axis=0),
        discounted_returns=batch.returns,
        lengths=batch.lengths.astype(jnp.int32),
        episode_metrics=metrics(batch.visits.reshape(*batch.visits.shape[:2], -1), plays.ended),
        update_metrics=update_metrics,
        work={},
    )
    return learners, rounds


def _play_groups(
    tables: Tables, horizon: int, algorithms: Any, learners: Learner, keys: Array, k: Array
) -> tuple[Array, Plays]:
    """Round `k` of K agents with a dial: the level of each episode [K, n], and the plays, a policy for each group."""
    K, n = keys.shape
    levels = jax.vmap(lambda algorithm: algorithm.dial.levels(k))(algorithms)
    tables_of: Any = jax.vmap(lambda algorithm, learner, x: algorithm.exploring_tables(learner, x))
    policies = tables_of(algorithms, learners, levels)
    groups = K * levels.shape[1]
    plays = play(tables, policies.reshape(groups, *policies.shape[2:]), keys.reshape(groups, -1), horizon)
    joined = Plays(plays.outcome.reshape(-1, K, n), plays.ended.reshape(K, n))
    return jnp.repeat(levels, n // levels.shape[1], axis=1), joined


@partial(jax.jit, static_argnames=("metrics", "horizon", "max_rounds"))
def _compiled_rounds(
    metrics: EpisodeMetrics,
    horizon: int,
    max_rounds: int,
    tables: Tables,
    constants: Any,
    learners: Learner,
    first: Array,
    count: Array,
    timesteps: Array,
) -> tuple[Learner, Rounds, Array]:
    """At most `count` rounds in a loop whose length is data: any split of a run into calls gives the same bits."""
    one_round = partial(_round, metrics, horizon, tables, constants)
    shapes = jax.eval_shape(one_round, learners, first)[1]
    empty = jax.tree.map(lambda x: jnp.zeros((max_rounds, *x.shape), x.dtype), shapes)

    def cond(carry: tuple[Array, Array, Learner, Rounds]) -> Array:
        k, steps, _, _ = carry
        return (k < count) & (steps < timesteps)

    def body(carry: tuple[Array, Array, Learner, Rounds]) -> tuple[Array, Array, Learner, Rounds]:
        k, steps, learners, rounds = carry
        learners, latest = one_round(learners, first + k)
        rounds = jax.tree.map(lambda all_rounds, x: all_rounds.at[k].set(x), rounds, latest)
        return k + 1, steps + latest.lengths.sum(dtype=jnp.int32), learners, rounds

    k, _, learners, rounds = jax.lax.while_loop(cond, body, (jnp.int32(0), jnp.int32(0), learners, empty))
    return learners, rounds, k
