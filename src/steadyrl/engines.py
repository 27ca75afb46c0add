"""Rounds of collecting and updating: inside one compiled program, or with episodes from a simulator.

An engine takes the learners of K agents that differ in their seeds alone through a few rounds of collecting and
updating. Round k of an agent depends on its settings, its seed and k, and on nothing else.
"""

from __future__ import annotations

import dataclasses
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.batch import batch_of_pairs, batch_of_steps
from steadyrl.behaviour import Behaviour
from steadyrl.episodes import Episodes
from steadyrl.returns import discounted_returns
from steadyrl.rollout import Facts, Tables, finite_face, play, rewards_of
from steadyrl.streams import Stream, key_of
from steadyrl.transitions import transitions_of_episodes, transitions_of_plays

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent
    from steadyrl.agents.algorithm import Algorithm, Learner, Tabular


EPISODES_PER_RECORD = 50
"""Metrics are told round by round, but of about so many episodes at a time for methods with smaller rounds."""


class Rounds(NamedTuple):
    """What happened in c rounds of K agents with n episodes each."""

    returns: Any
    """[c, K, n]: undiscounted."""
    discounted_returns: Any
    """[c, K, n]."""
    lengths: Any
    """[c, K, n]: in steps."""
    facts: dict[str, Any]
    """name -> [c, K, n]."""
    updates: Any
    """[c, K]: how many updates the batch was used for."""
    work: dict[str, Any]
    """name -> [c, K]: what it took to collect and to update; empty where that cannot be told apart."""


class Engine(Protocol):
    """A source of episodes for a group of agents."""

    most_rounds: int
    """How many rounds one call of `advance` can take."""

    def advance(self, learners: Learner, first: int, count: int, timesteps: int) -> tuple[Learner, Rounds]:
        """Rounds `first` .. `first + count - 1`, fewer if `timesteps` steps are reached; leading axis K throughout.

        An error if parameters diverge in them.
        """
        ...


class CompiledEngine:
    """Collecting and updating inside one compiled program, for an environment with a finite face.

    A program has `lanes` agents side by side, and seed s is in lane s mod `lanes`. Several agents are several calls of
    it, which share the cores, and lanes that are left compute for nothing. So the bits of a seed depend on the number
    of lanes, but neither on the other seeds nor on the number of cores.
    """

    LANES = 5

    def __init__(self, agents: list[Agent], lanes: int) -> None:
        self._agent = agents[0]
        assert isinstance(self._agent.env, gym.Env)
        face = finite_face(self._agent.env)
        assert face is not None
        self._round = CompiledRound(self._agent.algorithm, face.facts, face.mdp.horizon)
        self._tables = Tables.of(face.mdp)
        self._calls = _in_lanes([agent.seed for agent in agents], lanes)
        keys = jnp.stack([key_of(agent.seed, Stream.EPISODES) for agent in agents])
        self._keys = [keys[call] for call in self._calls]
        # Where among the lanes of all calls each agent is.
        self._places = np.array([np.concatenate(self._calls).tolist().index(k) for k in range(len(agents))])
        self._compiled = False
        # Results are fetched about once in 1,000 episodes: often enough to watch, too seldom to cost.
        self.most_rounds = max(1, 1000 // agents[0].settings.n)

    def advance(self, learners: Learner, first: int, count: int, timesteps: int) -> tuple[Learner, Rounds]:
        """See `Engine`."""
        most = min(timesteps, np.iinfo(np.int32).max)

        def of_call(call: Any, keys: Array) -> tuple[Learner, Rounds]:
            chosen = jax.tree.map(lambda x: x[call], learners)
            moved, rounds, done = _compiled_rounds(
                self._round, self.most_rounds, self._tables, chosen, keys, first, count, most
            )
            return moved, jax.tree.map(lambda x: np.asarray(x)[: int(done)], rounds)

        # Threads suffice: a compiled program runs without Python's lock. The first time one compiles for all.
        with ThreadPoolExecutor(os.cpu_count() if self._compiled else 1) as threads:
            moved, rounds = zip(*threads.map(of_call, self._calls, self._keys), strict=True)
        self._compiled = True
        learners = jax.tree.map(lambda *x: jnp.concatenate(x)[self._places], *moved)
        check_finite(self._agent, learners)
        return learners, jax.tree.map(lambda *x: np.concatenate(x, axis=1)[:, self._places], *rounds)


def _in_lanes(seeds: list[int], lanes: int) -> list[Any]:
    """For each call the numbers of the agents in its lanes; the first of them also where there would be none."""
    calls: list[dict[int, int]] = []
    for k, seed in sorted(enumerate(seeds), key=lambda one: one[1]):
        free = next((call for call in calls[-1:] if seed % lanes not in call), None)
        if free is None:
            calls.append(free := {})
        free[seed % lanes] = k
    return [np.array([call.get(lane, next(iter(call.values()))) for lane in range(lanes)]) for call in calls]


@dataclass(frozen=True)
class CompiledRound:
    """One round of K agents, as a function of arrays; what is fixed when it is compiled is in the fields."""

    algorithm: Algorithm
    facts: Facts
    horizon: int

    def __call__(self, tables: Tables, learners: Learner, keys: Array, k: Array) -> tuple[Learner, Rounds]:
        """Round `k`: collect n episodes with each policy, then update it."""
        n, gamma = self.algorithm.settings.n, self.algorithm.settings.gamma
        each = k * n + jnp.arange(n)
        episode_keys = jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(each))(keys)
        acting = jax.vmap(cast("Tabular", self.algorithm).acting)
        plays = play(tables, acting(learners), episode_keys, self.horizon)
        batch = batch_of_pairs(tables, plays, gamma)
        material = transitions_of_plays(tables, plays) if self.algorithm.material == "transitions" else batch
        learners, updates = jax.vmap(self.algorithm.update)(learners, material)
        happened = Rounds(
            returns=rewards_of(tables, plays).sum(axis=0),
            discounted_returns=batch.returns,
            lengths=batch.lengths.astype(jnp.int32),
            facts=self.facts(batch.visits.reshape(*batch.visits.shape[:2], -1), plays.ended),
            updates=updates,
            work={},
        )
        return learners, happened


@partial(jax.jit, static_argnames=("one_round", "most_rounds"))
def _compiled_rounds(
    one_round: CompiledRound,
    most_rounds: int,
    tables: Tables,
    learners: Learner,
    keys: Array,
    first: Array,
    count: Array,
    timesteps: Array,
) -> tuple[Learner, Rounds, Array]:
    """At most `count` rounds in a loop whose length is data: any split of a run into calls gives the same bits."""
    shapes = jax.eval_shape(one_round, tables, learners, keys, first)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros((most_rounds, *x.shape), x.dtype), shapes)

    def go_on(carry: tuple[Array, Array, Learner, Rounds]) -> Array:
        k, steps, _, _ = carry
        return (k < count) & (steps < timesteps)

    def advance(carry: tuple[Array, Array, Learner, Rounds]) -> tuple[Array, Array, Learner, Rounds]:
        k, steps, learners, rounds = carry
        learners, latest = one_round(tables, learners, keys, first + k)
        rounds = jax.tree.map(lambda all_rounds, x: all_rounds.at[k].set(x), rounds, latest)
        return k + 1, steps + latest.lengths.sum(dtype=jnp.int32), learners, rounds

    k, _, learners, rounds = jax.lax.while_loop(go_on, advance, (jnp.int32(0), jnp.int32(0), learners, nothing))
    return learners, rounds, k


class HostEngine:
    """Episodes from a simulator, one agent after the other; only the update is compiled."""

    def __init__(self, agents: list[Agent]) -> None:
        (self.agent,) = agents
        # Small rounds are told together.
        self.most_rounds = max(1, EPISODES_PER_RECORD // self.agent.settings.n)

    def advance(self, learners: Learner, first: int, count: int, timesteps: int) -> tuple[Learner, Rounds]:
        """See `Engine`."""
        learner = jax.tree.map(lambda x: x[0], learners)
        done: list[Rounds] = []
        for k in range(first, first + count):
            learner, rounds = self._round(learner, k)
            done.append(rounds)
            timesteps -= int(rounds.lengths.sum())
            if timesteps <= 0:
                break
        check_finite(self.agent, learner)
        return jax.tree.map(lambda x: x[None], learner), jax.tree.map(lambda *x: np.stack(x)[:, None], *done)

    def _round(self, learner: Learner, k: int) -> tuple[Learner, Rounds]:
        """Round `k`: collect n episodes, then update."""
        agent, algorithm, n = self.agent, self.agent.algorithm, self.agent.settings.n
        started = time.perf_counter()
        behaviour, idle = agent.behaviour(learner, exploring_at=agent.timesteps), agent.simulator().idle_steps
        # One seed an episode, from the run's seed and the episode's number.
        episodes = agent.collect(behaviour, [episode_seed(agent.seed, k * n + i) for i in range(n)], first=k * n)
        collected = time.perf_counter()
        learner, updates = jax.block_until_ready(  # type: ignore[no-untyped-call]
            _update(algorithm, learner, _padded(_normalised(episodes, behaviour)))
        )
        if behaviour.seen is not None:
            learner = learner._replace(seen=behaviour.seen.and_also(episodes.observations[episodes.mask > 0]))
        rounds = Rounds(
            returns=episodes.rewards.sum(axis=-1),
            discounted_returns=discounted_returns(episodes.rewards, algorithm.settings.gamma),
            lengths=episodes.mask.sum(axis=-1).astype(int),
            facts=episodes.facts,
            updates=np.asarray(updates),
            work={
                "idle_steps": np.asarray(agent.simulator().idle_steps - idle),
                "seconds_collecting": np.asarray(collected - started),
                "seconds_updating": np.asarray(time.perf_counter() - collected),
            },
        )
        return learner, rounds


def check_finite(agent: Agent, learner: Any) -> None:
    """Refuse to take over parameters that diverged; the agent keeps those from before."""
    if not all(np.all(np.isfinite(np.asarray(x))) for x in jax.tree.leaves(learner)):
        rates = [name for name in dataclasses.asdict(agent.settings) if name.endswith("learning_rate")]
        raise FloatingPointError(
            f"{agent.name}: parameters became infinite or NaN after {agent.episodes} episodes. "
            f"Lower {' or '.join(rates)}. The agent keeps what it had learned until then."
        )


def episode_seed(seed: int, episode: int) -> int:
    """What an episode starts from: its number in the run of a seed."""
    return int(np.random.SeedSequence([seed, Stream.EPISODES, episode]).generate_state(1)[0])


def _normalised(episodes: Episodes, behaviour: Behaviour) -> Episodes:
    """With observations as the networks took them."""
    if behaviour.seen is None:
        return episodes
    return episodes._replace(
        observations=behaviour.normalised(episodes.observations),
        last_observations=behaviour.normalised(episodes.last_observations),
    )


def padded_length(T: int) -> int:
    """1, 16, 128, then 2^k and 3 * 2^k: so few lengths that the update is seldom compiled, so many that little is lost.

    Among the short ones an update costs less than its compilation.
    """
    if T <= 128:
        return 1 if T == 1 else 16 if T <= 16 else 128
    double = 1 << (T - 1).bit_length()
    return double * 3 // 4 if double * 3 // 4 >= T else double


def _padded(episodes: Episodes) -> Episodes:
    T = episodes.rewards.shape[1]
    more = padded_length(T) - T

    def pad(x: Any) -> Any:
        return np.concatenate([x, np.zeros((len(x), more, *x.shape[2:]), x.dtype)], axis=1)

    steps = ("observations", "actions", "rewards", "mask")
    return episodes._replace(**{name: pad(getattr(episodes, name)) for name in steps}, facts={})


@partial(jax.jit, static_argnames="algorithm")
def _update(algorithm: Algorithm, learner: Learner, episodes: Episodes) -> tuple[Learner, Array]:
    match algorithm.material:
        case "batch":
            return algorithm.update(learner, batch_of_steps(episodes, algorithm.settings.gamma))
        case "transitions":
            return algorithm.update(learner, transitions_of_episodes(episodes))
        case _:
            return algorithm.update(learner, episodes)
