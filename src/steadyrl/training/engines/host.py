"""The engine of policy gradients in any environment: episodes from a simulator, and a compiled update."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import jax
import numpy as np

from steadyrl.base.seeding import training_episode_seed
from steadyrl.rollouts.acting import Actor, Blocks
from steadyrl.rollouts.collector import collect
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.rollouts.workers import EpisodeWorkers
from steadyrl.training.acting import make_actor
from steadyrl.training.algorithm import Learner, Metrics, Trainee, is_recurrent
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes
from steadyrl.training.dial import round_levels
from steadyrl.training.engines.engine import EPISODES_PER_RECORD, Rounds, as_arrays, block_until_ready, check_finite
from steadyrl.training.engines.limits import check_returns, training_limits
from steadyrl.training.returns import discounted_returns
from steadyrl.training.schedule import CONSTANT, FACTOR, Schedule, with_rates
from steadyrl.training.transitions import transitions_from_episodes


class HostEngine:
    """An `Engine` for one agent. It owns the simulator and the acting policy of the training episodes."""

    def __init__(self, agent: Trainee, schedule: Schedule = CONSTANT) -> None:
        self._agent, self._algorithm, self._schedule = agent, as_arrays(agent.algorithm), schedule
        self._n, self._gamma = agent.settings.n, agent.settings.gamma
        self._limits, self._timesteps = training_limits(agent), agent.timesteps
        self._simulator = simulator_for(agent.engine, agent.source, self._n)
        self._workers = EpisodeWorkers(agent.workers, agent.source.another) if agent.workers else None
        # Small rounds are recorded together.
        self.max_rounds = max(1, EPISODES_PER_RECORD // self._n)

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """See `Engine`."""
        learner, first, done = self._agent.learner, self._agent.iterations, list[Rounds]()
        self._timesteps = self._agent.timesteps
        for k in range(first, first + count):
            learner, rounds = self._round(learner, k)
            done.append(rounds)
            self._timesteps += int(rounds.lengths.sum())
            if self._timesteps - self._agent.timesteps >= timesteps:
                break
        results = [(learner, jax.tree.map(lambda *x: np.stack(x), *done))]
        check_finite([self._agent], results)
        return results

    def _round(self, learner: Learner, k: int) -> tuple[Learner, Rounds]:
        """Round `k`: act, collect, make the batch, update, record."""
        clock, idle = [time.perf_counter()], self._simulator.idle_steps
        levels = round_levels(self._agent.algorithm, k, self._n)
        actor = make_actor(self._agent.algorithm, learner, self._agent.observation_space, exploring_at=0, levels=levels)
        episodes = self._collect(actor, k)
        clock.append(time.perf_counter())
        batch = EpisodeBatch.of(episodes, self._gamma, actor.inputs, levels)
        if self._agent.algorithm.batch_kind != "transitions" and not is_recurrent(self._agent.algorithm):
            batch = batch.packed()
        factor = self._schedule.factor_of(k * self._n, self._timesteps)
        learner, metrics = block_until_ready(_update(with_rates(self._algorithm, factor), learner, batch))
        clock.append(time.perf_counter())
        metrics |= {} if factor is None else {FACTOR: factor}
        if actor.moments is not None:
            learner = learner._replace(seen=actor.moments.update(episodes.observations[episodes.mask > 0]))
        return learner, self._record(episodes, metrics, clock, self._simulator.idle_steps - idle)

    def close(self) -> None:
        """See `Engine`."""
        self._simulator.close()
        if self._workers is not None:
            self._workers.close()

    def _collect(self, actor: Actor, k: int) -> Episodes:
        """Whole episodes, each from a seed that follows from the run's seed and the episode's number."""
        first = k * self._n
        seeds = [training_episode_seed(self._agent.seed, first + i) for i in range(self._n)]
        limits = self._limits._replace(first_episode=first)
        if self._agent.engine == "gymnasium" and actor.observation_space is not None:
            # Where there may be workers, actions must not depend on which other episodes are played at the same time.
            actor = dataclasses.replace(actor, blocks=Blocks.of(np.arange(self._n)))
        if self._workers is not None:
            episodes = self._workers.collect(actor, seeds, limits)
        else:
            episodes = collect(self._simulator, actor, seeds, limits)
        check_returns(episodes.rewards.sum(axis=-1), limits)
        return episodes

    def _record(self, episodes: Episodes, metrics: Metrics, clock: list[float], idle_steps: int) -> Rounds:
        return Rounds(
            returns=episodes.rewards.sum(axis=-1),
            discounted_returns=discounted_returns(episodes.rewards, self._gamma),
            lengths=episodes.mask.sum(axis=-1).astype(int),
            episode_metrics=episodes.episode_metrics,
            update_metrics={name: np.asarray(value) for name, value in metrics.items()},
            work={
                "idle_steps": np.asarray(idle_steps),
                "seconds_collecting": np.asarray(clock[1] - clock[0]),
                "seconds_updating": np.asarray(clock[2] - clock[1]),
            },
        )


@jax.jit
def _update(algorithm: Any, learner: Learner, episodes: EpisodeBatch) -> tuple[Learner, Metrics]:
    batch: Any = episodes
    if algorithm.batch_kind == "batch":
        batch = batch_from_episodes(episodes, algorithm.settings.gamma)
    elif algorithm.batch_kind == "transitions":
        batch = transitions_from_episodes(episodes)
    result: tuple[Learner, Metrics] = algorithm.update(learner, batch)
    return result
