"""What engines share that play and learn inside one compiled program, several agents at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.machine import usable_cores
from steadyrl.training.algorithm import Learner, Trainee
from steadyrl.training.engines.engine import Rounds, as_arrays, check_finite
from steadyrl.training.schedule import CONSTANT, FACTOR, Schedule, with_rates

T = TypeVar("T")

VMAP_WIDTH = 5
"""Agents in one call of the program where several are trained together."""
_MAX_COUNT = int(np.iinfo(np.int32).max)
"""What a program counts to."""
_compiled_here: set[Any] = set()
"""The signatures of the programs that this process has compiled."""


class CompiledRound(Protocol):
    """One round of the agents in a call of the program. Hashable: programs are compiled for it."""

    def __call__(self, shared: Any, constants: Any, learners: Learner, k: Array) -> tuple[Learner, Rounds]:
        """Round `k` of K agents: act, collect, make the batch, update, record.

        `shared` arrays are the same for all; `constants` and `learners` have a leading axis of the agents.
        """
        ...


class ProgramEngine:
    """An `Engine` for agents that differ in their seeds and in the numbers of their settings alone.

    A call of the program trains `vmap_width` agents. More agents take several calls, which share the cores; unused
    slots compute something that is thrown away. The bits of a run depend on the width, but not on its slot, on the
    other agents or on the number of cores.
    """

    def __init__(
        self,
        agents: Sequence[Trainee],
        one_round: CompiledRound,
        shared: Any,
        constants: Sequence[Any],
        vmap_width: int,
        max_rounds: int,
        schedule: Schedule = CONSTANT,
    ) -> None:
        """`constants` are those of each agent, besides its algorithm."""
        if schedule.kind != "constant" and schedule.first + schedule.total > _MAX_COUNT:
            raise ValueError(
                f"learning_rate_schedule={schedule.kind!r}: a compiled program counts to {_MAX_COUNT:,}, and the "
                f"budget ends at {schedule.first + schedule.total:,} {schedule.unit}. Lower it, or use a constant "
                "schedule."
            )
        self._schedule = schedule
        self._agents, self._round, self._shared, self.max_rounds = agents, one_round, shared, max_rounds
        self._calls = _assign_slots(len(agents), vmap_width)
        of_all = _stack([as_arrays(agent.algorithm) for agent in agents]), *_stack(constants)
        self._constants = [_select(of_all, call) for call in self._calls]
        # The position of each agent among the slots of all calls.
        self._positions = [np.concatenate(self._calls).tolist().index(k) for k in range(len(agents))]

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """See `Engine`."""
        learners, first = _stack([agent.learner for agent in self._agents]), self._agents[0].iterations
        limit = min(timesteps, _MAX_COUNT)
        start = self._agents[0].timesteps if self._schedule.unit == "timesteps" else 0

        def run(call: Any, constants: Any) -> tuple[Learner, Rounds]:
            moved, rounds, done = _compiled_rounds(
                self._round,
                self.max_rounds,
                self._schedule,
                self._shared,
                constants,
                _select(learners, call),
                first,
                count,
                limit,
                start,
            )
            return jax.tree.map(np.asarray, moved), jax.tree.map(lambda x: np.asarray(x)[: int(done)], rounds)

        arguments = self._schedule, self._shared, self._constants[0], _select(learners, self._calls[0])
        moved, rounds = zip(*self._all_calls(run, (self._round, self.max_rounds, _signature(arguments))), strict=True)
        learners = jax.tree.map(lambda *x: np.concatenate(x), *moved)
        rounds = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *rounds)
        results = [
            (jax.tree.map(jnp.asarray, _select(learners, p)), jax.tree.map(lambda x, p=p: x[:, p], rounds))
            for p in self._positions
        ]
        self.check_rounds([rounds for _, rounds in results])
        check_finite(self._agents, results)
        return results

    def _all_calls(self, run: Callable[[Any, Any], T], program: Any) -> list[T]:
        """`run` of each call. Threads suffice: a compiled program runs without the GIL."""
        # Where the program is new, the first call compiles for all.
        done = 0 if program in _compiled_here else 1
        first = list(map(run, self._calls[:done], self._constants))
        _compiled_here.add(program)
        with ThreadPoolExecutor(usable_cores()) as threads:
            return [*first, *threads.map(run, self._calls[done:], self._constants[done:])]

    def check_rounds(self, rounds: Sequence[Rounds]) -> None:
        """An error if the episodes of an agent cannot be learned from."""

    def close(self) -> None:
        """There is no simulator."""


def keys_of_episodes(keys: Array, episodes: Array) -> Array:
    """[K, n]: the key of each of these episodes, from the data of the agents' keys."""
    agent_keys = jax.random.wrap_key_data(keys)
    return jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(episodes))(agent_keys)


# In NumPy: JAX would compile a program for each shape, and dozens of them take longer than a short training.
def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *trees)


def _select(tree: Any, which: Any) -> Any:
    return jax.tree.map(lambda x: x[which], tree)


def _signature(tree: Any) -> Any:
    """What a program is compiled for: the structure of its arguments, and their shapes."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.shape(leaf) for leaf in leaves)


def _assign_slots(agents: int, width: int) -> list[Any]:
    """For each call of the program the index of the agent in each slot; an unused slot repeats the last agent."""
    slots = np.arange(-(-agents // width) * width).clip(max=agents - 1)
    return list(slots.reshape(-1, width))


@partial(jax.jit, static_argnames=("one_round", "max_rounds"))
def _compiled_rounds(
    one_round: CompiledRound,
    max_rounds: int,
    schedule: Schedule,
    shared: Any,
    constants: Any,
    learners: Learner,
    first: Array,
    count: Array,
    timesteps: Array,
    start: Array,
) -> tuple[Learner, Rounds, Array]:
    """At most `count` rounds in a loop whose length is data: any split of a run into calls gives the same bits.

    `start` is the number of timesteps before the call, if the schedule counts them.
    """

    def play_and_learn(learners: Learner, k: Array, steps: Array) -> tuple[Learner, Rounds]:
        if schedule.kind == "constant":
            return one_round(shared, constants, learners, k)
        algorithms, *others = constants
        done = start + steps if schedule.unit == "timesteps" else k * algorithms.settings.n
        factor = schedule.factor(done, jnp)
        learners, rounds = one_round(shared, (with_rates(algorithms, factor), *others), learners, k)
        recorded = {FACTOR: jnp.full(rounds.returns.shape[0], factor)}
        return learners, rounds._replace(update_metrics=rounds.update_metrics | recorded)

    shapes = jax.eval_shape(play_and_learn, learners, first, jnp.int32(0))[1]
    empty = jax.tree.map(lambda x: jnp.zeros((max_rounds, *x.shape), x.dtype), shapes)

    def cond(carry: tuple[Array, Array, Learner, Rounds]) -> Array:
        k, steps, _, _ = carry
        return (k < count) & (steps < timesteps)

    def body(carry: tuple[Array, Array, Learner, Rounds]) -> tuple[Array, Array, Learner, Rounds]:
        k, steps, learners, rounds = carry
        learners, latest = play_and_learn(learners, first + k, steps)
        rounds = jax.tree.map(lambda all_rounds, x: all_rounds.at[k].set(x), rounds, latest)
        return k + 1, steps + latest.lengths.sum(dtype=jnp.int32), learners, rounds

    k, _, learners, rounds = jax.lax.while_loop(cond, body, (jnp.int32(0), jnp.int32(0), learners, empty))
    return learners, rounds, k
