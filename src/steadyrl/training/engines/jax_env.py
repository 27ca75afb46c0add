"""The engine of JAX environments: episodes and updates inside one compiled program, with networks or tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steadyrl.base.memory import check_memory
from steadyrl.base.seeding import Stream, stream_key
from steadyrl.envs.jax_env import JaxModel, jax_model
from steadyrl.envs.spaces import feature_count
from steadyrl.rollouts.collector import FaultyEnvironmentError, stacked_metrics
from steadyrl.rollouts.jax_play import JaxPlays, acting, observation_features, play, policy_inputs, takes_states
from steadyrl.training.algorithm import Learner, Trainee
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes
from steadyrl.training.dial import dial_of
from steadyrl.training.engines.engine import EPISODES_PER_RECORD, Rounds
from steadyrl.training.engines.limits import check_returns, training_limits
from steadyrl.training.engines.program import ProgramEngine, keys_of_episodes
from steadyrl.training.returns import discount_factors
from steadyrl.training.schedule import CONSTANT, Schedule

EPISODES_PER_CALL, STEPS_PER_CALL = 1000, 100_000
"""What a call of the program plays, if all episodes reach the horizon: results are fetched in between, and training can
be interrupted."""
COPIES = 4
"""Of the steps of a batch in memory: while they are played, in a batch, and in an update."""


class JaxEngine(ProgramEngine):
    """A `ProgramEngine` for policy gradients in a JAX environment."""

    def __init__(self, agents: Sequence[Trainee], vmap_width: int, schedule: Schedule = CONSTANT) -> None:
        model, first = jax_model(agents[0].env), agents[0]
        assert model is not None
        self._limits = training_limits(first)
        n = first.settings.n
        _check(model, first, n, vmap_width)
        metrics = jax.eval_shape(partial(_final_metrics, model))
        stacked_metrics([dict.fromkeys(metrics, 0.0)], self._limits)
        constants = [
            (
                jax.random.key_data(stream_key(agent.seed, Stream.EPISODES)),
                discount_factors(agent.settings.gamma, model.horizon).astype(np.float32),
            )
            for agent in agents
        ]
        fetched = min(EPISODES_PER_CALL, STEPS_PER_CALL // model.horizon)
        max_rounds = max(1, EPISODES_PER_RECORD // n, fetched // n)
        super().__init__(agents, JaxRound(model), (), constants, vmap_width, max_rounds, schedule)

    def check_rounds(self, rounds: Sequence[Rounds]) -> None:
        """See `ProgramEngine`."""
        for agent, latest in zip(self._agents, rounds, strict=True):
            first = agent.iterations * agent.settings.n
            returns = np.asarray(latest.returns, np.float64).ravel()
            for index in np.flatnonzero(np.isnan(returns)):
                raise FaultyEnvironmentError(
                    f"{agent.env_name}: a reward or an action in episode {first + int(index)} (agent seed {agent.seed})"
                    " is not a number. Fix the environment: jax.config.update('jax_debug_nans', True) shows where."
                )
            check_returns(returns, self._limits._replace(first_episode=first))


@dataclass(frozen=True)
class JaxRound:
    """A `CompiledRound` in a JAX environment."""

    model: JaxModel

    def __call__(self, shared: Any, constants: Any, learners: Learner, k: Array) -> tuple[Learner, Rounds]:
        """See `CompiledRound`."""
        algorithms, keys, discounts = constants
        policy, n = algorithms.policy, algorithms.settings.n
        episode_keys = keys_of_episodes(keys, k * n + jnp.arange(n))
        levels = None
        if dial_of(algorithms) is not None:
            of_groups = jax.vmap(lambda algorithm: algorithm.dial.levels(k))(algorithms)
            levels = jnp.repeat(of_groups, n // of_groups.shape[1], axis=1)
        act = acting(policy, learners.theta, learners.seen, levels)
        features = observation_features(self.model.observation_space, takes_states(policy))
        plays = play(self.model, act, episode_keys, features, policy.jax_noise)
        learners, metrics = _each(_learn, algorithms, learners, plays, discounts, levels)
        rounds = Rounds(
            returns=plays.rewards.sum(axis=-1),
            discounted_returns=(plays.rewards * discounts[:, None]).sum(axis=-1),
            lengths=plays.lengths,
            episode_metrics=plays.episode_metrics,
            update_metrics=metrics,
            work={},
        )
        return learners, rounds


def _learn(
    algorithm: Any, learner: Learner, plays: JaxPlays, discounts: Array, levels: Array | None
) -> tuple[Learner, Any]:
    """One agent: make the batch, update, and count the observations, with which the next round normalizes."""
    observations, last = (
        policy_inputs(algorithm.policy, learner.seen, levels, x) for x in (plays.observations, plays.last_observations)
    )
    mask = plays.mask
    episodes = EpisodeBatch(
        observations=jnp.where(mask[..., None], observations, 0) if observations.ndim > mask.ndim else observations,
        actions=plays.actions,
        rewards=plays.rewards,
        mask=mask.astype(jnp.float32),
        last_observations=last,
        terminated=plays.terminated,
        discounts=discounts,
        levels=levels,
    )
    given: Any = episodes
    if algorithm.batch_kind == "batch":
        given = batch_from_episodes(episodes, algorithm.settings.gamma)
    updated, metrics = algorithm.update(learner, given)
    if learner.seen:
        updated = updated._replace(seen=learner.seen.update_masked(plays.observations, mask))
    return updated, metrics


def _each(function: Any, *arguments: Any) -> Any:
    """`function` of each agent. A single one is not mapped: loops of data-dependent length cost less without."""
    if len(jax.tree.leaves(arguments)[0]) > 1:
        return jax.vmap(function)(*arguments)
    result = function(*jax.tree.map(lambda x: x[0], arguments))
    return jax.tree.map(lambda x: x[None], result)


def _final_metrics(model: JaxModel) -> dict[str, Array]:
    return model.episode_metrics(model.reset(jax.random.key(0))[1])


def _check(model: JaxModel, agent: Trainee, n: int, vmap_width: int) -> None:
    """An error if episodes are longer than the agent's settings or the memory allow."""
    if model.horizon > agent.settings.max_episode_steps:
        raise FaultyEnvironmentError(
            f"{agent.env_name}: its horizon of {model.horizon} is above max_episode_steps="
            f"{agent.settings.max_episode_steps}. Raise max_episode_steps, or lower the horizon: steadyrl.from_jax."
        )
    numbers = feature_count(agent.observation_space) + feature_count(agent.action_space) + 3
    check_memory("episodes_per_update", n, 4.0 * COPIES * vmap_width * n * model.horizon * numbers)
