"""The engine of finite environments: tables that are learned inside one compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.seeding import Stream, stream_key
from steadyrl.envs.finite import EpisodeMetrics, finite_model
from steadyrl.rollouts.compiled import Plays, Tables, play, rewards_of
from steadyrl.training.algorithm import Learner, Trainee
from steadyrl.training.batch import batch_from_plays
from steadyrl.training.dial import dial_of
from steadyrl.training.engines.engine import Rounds
from steadyrl.training.engines.limits import check_model
from steadyrl.training.engines.program import ProgramEngine, keys_of_episodes
from steadyrl.training.returns import discount_factors
from steadyrl.training.schedule import CONSTANT, Schedule
from steadyrl.training.transitions import transitions_from_plays


class CompiledEngine(ProgramEngine):
    """A `ProgramEngine` for tables in an environment that is known in full."""

    def __init__(self, agents: Sequence[Trainee], vmap_width: int, schedule: Schedule = CONSTANT) -> None:
        model = finite_model(agents[0].env)
        assert model is not None
        check_model(agents[0], model)
        horizon = model.mdp.horizon
        constants = [
            (
                jax.random.key_data(stream_key(agent.seed, Stream.EPISODES)),
                discount_factors(agent.settings.gamma, horizon).astype(np.float32),
            )
            for agent in agents
        ]
        # Results are fetched about once in 1,000 episodes: often enough to watch, too rarely to cost.
        max_rounds = max(1, 1000 // agents[0].settings.n)
        one_round = FiniteRound(model.metrics, horizon)
        super().__init__(agents, one_round, Tables.of(model.mdp), constants, vmap_width, max_rounds, schedule)


@dataclass(frozen=True)
class FiniteRound:
    """A `CompiledRound` in a finite environment, whose tables are what all agents share."""

    metrics: EpisodeMetrics
    horizon: int

    def __call__(self, shared: Tables, constants: Any, learners: Learner, k: Array) -> tuple[Learner, Rounds]:
        """See `CompiledRound`."""
        tables, (algorithms, keys, discounts) = shared, constants
        n = algorithms.settings.n
        episode_keys = keys_of_episodes(keys, k * n + jnp.arange(n))
        if dial_of(algorithms) is None:
            levels = None
            policies = jax.vmap(lambda algorithm, learner: algorithm.exploring_table(learner))(algorithms, learners)
            plays = play(tables, policies, episode_keys, self.horizon)
        else:
            levels, plays = _play_groups(tables, self.horizon, algorithms, learners, episode_keys, k)
        batch = batch_from_plays(tables, plays, algorithms.settings.gamma, levels)
        given = transitions_from_plays(tables, plays, discounts) if algorithms.batch_kind == "transitions" else batch
        update: Any = jax.vmap(lambda algorithm, learner, given: algorithm.update(learner, given))
        learners, update_metrics = update(algorithms, learners, given)
        rounds = Rounds(
            returns=rewards_of(tables, plays).sum(axis=0),
            discounted_returns=batch.returns,
            lengths=batch.lengths.astype(jnp.int32),
            episode_metrics=self.metrics(batch.visits.reshape(*batch.visits.shape[:2], -1), plays.ended),
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
