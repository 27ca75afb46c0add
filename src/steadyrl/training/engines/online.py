"""The engine of methods that learn from each step right after it was made, such as Q-learning on a table."""

from __future__ import annotations

import time
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.base.seeding import training_episode_seed
from steadyrl.rollouts.acting import ActionNoise, Actor
from steadyrl.rollouts.collector import iterate_steps, stacked_metrics
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.algorithm import Learner, Online, Trainee
from steadyrl.training.engines.engine import EPISODES_PER_RECORD, Rounds, check_finite
from steadyrl.training.engines.limits import check_returns, training_limits
from steadyrl.training.returns import discounted_returns
from steadyrl.training.schedule import CONSTANT, FACTOR, Schedule, with_rates


class OnlineEngine:
    """An `Engine` for one agent; a round is one episode, and all its randomness comes from the episode's seed."""

    max_rounds = EPISODES_PER_RECORD

    def __init__(self, agent: Trainee, schedule: Schedule = CONSTANT) -> None:
        self._agent, self._limits, self._schedule = agent, training_limits(agent), schedule
        self._algorithm = cast(Online, agent.algorithm)
        self._simulator = simulator_for(agent.engine, agent.source, agent.settings.n)

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """See `Engine`."""
        learner, t, first, done = self._agent.learner, self._agent.timesteps, self._agent.iterations, list[Rounds]()
        table = np.array(learner.theta)  # A copy, which each step changes.
        for k in range(first, first + count):
            done.append(self._episode(table, k, t))
            t += int(done[-1].lengths.sum())
            if t - self._agent.timesteps >= timesteps:
                break
        learner = learner._replace(theta=jnp.asarray(table))
        results = [(learner, jax.tree.map(lambda *x: np.stack(x), *done))]
        check_finite([self._agent], results)
        return results

    def close(self) -> None:
        """See `Engine`."""
        self._simulator.close()

    def _episode(self, table: Any, k: int, t: int) -> Rounds:
        """Episode `k`, which begins after `t` steps: act, learn from the step, act with what was learned."""
        started, idle, settings = time.perf_counter(), self._simulator.idle_steps, self._agent.settings
        seed, rewards, squared_errors = training_episode_seed(self._agent.seed, k), list[float](), 0.0
        limits, factor = self._limits._replace(first_episode=k), self._schedule.factor_of(k, t)
        algorithm = with_rates(self._algorithm, factor)
        noise = ActionNoise(self._algorithm.exploring_policy(table, t)[0], [seed])

        def actor() -> Actor:
            return Actor(*self._algorithm.exploring_policy(table, t + len(rewards)), None)

        for step in iterate_steps(self._simulator, actor, noise, [seed], limits):
            (terminated,), (done,), (reward,) = step.result.terminated, step.done, step.result.rewards
            rewards.append(reward)
            terminal = terminated or (done and not settings.bootstrap_on_truncation)
            error = algorithm.learn_step(
                table,
                step.observations[0],
                step.actions[0],
                reward,
                step.next_observations[0],
                terminal,
                None if step.next_action_masks is None else step.next_action_masks[0],
            )
            squared_errors += error * error
        check_returns(np.array([sum(rewards)]), limits)
        return Rounds(
            returns=np.array([sum(rewards)]),
            discounted_returns=discounted_returns(np.array([rewards]), settings.gamma),
            lengths=np.array([len(rewards)]),
            episode_metrics=stacked_metrics([step.result.episode_metrics.get(0, {})], limits),
            update_metrics={
                "critic_loss": np.asarray(squared_errors / len(rewards)),
                "mean_q": np.asarray(table.mean()),
                "updates": np.asarray(len(rewards)),
                **({} if factor is None else {FACTOR: np.asarray(factor)}),
            },
            work={
                "idle_steps": np.asarray(self._simulator.idle_steps - idle),
                "seconds_collecting": np.asarray(time.perf_counter() - started),
                "seconds_updating": np.asarray(0.0),
            },
        )
