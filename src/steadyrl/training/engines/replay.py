"""The engine of DQN and TD3: steps go into a replay buffer, and every few of them a few updates are made from it."""

from __future__ import annotations

import time
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.base.seeding import Stream, stream_generator, training_episode_seed
from steadyrl.rollouts.acting import ActionNoise, Actor
from steadyrl.rollouts.collector import StepBatch, iterate_steps, single_threaded_blas, stacked_metrics
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.acting import make_actor
from steadyrl.training.algorithm import Learner, Metrics, OffPolicy, Trainee
from steadyrl.training.engines.engine import Rounds, as_arrays, block_until_ready, check_finite
from steadyrl.training.engines.limits import check_returns, training_limits
from steadyrl.training.engines.reward_offset import RewardOffsetCheck
from steadyrl.training.returns import discounted_returns
from steadyrl.training.schedule import CONSTANT, FACTOR, Schedule, with_rates


class ReplayEngine:
    """An `Engine` for one agent; a round is one episode.

    All its randomness comes from the episode's seed, except the target smoothing noise of TD3, which comes from the
    number of the update. Updates are made when the number of steps since the start of training is a multiple of
    `train_freq`, whether or not an episode ends there; until then the policy acts as it was.
    """

    max_rounds = 1

    def __init__(self, agent: Trainee, schedule: Schedule = CONSTANT) -> None:
        self._agent, self._settings, self._schedule = agent, agent.settings, schedule
        self._algorithm = cast(OffPolicy, as_arrays(agent.algorithm))
        self._simulator = simulator_for(agent.engine, agent.source, agent.settings.n)
        self._limits, self._reward_check = training_limits(agent), RewardOffsetCheck(agent)

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """See `Engine`."""
        with single_threaded_blas():
            learner, rounds = self._episode(self._agent.learner, self._agent.iterations)
        results = [(learner, jax.tree.map(lambda x: np.asarray(x)[None], rounds))]
        check_finite([self._agent], results)
        return results

    def _episode(self, learner: Learner, k: int) -> tuple[Learner, Rounds]:
        """Episode `k`: act, store the step, and every `train_freq` steps update."""
        agent, s, started = self._agent, self._settings, time.perf_counter()
        seed, t, idle = training_episode_seed(agent.seed, k), agent.timesteps, self._simulator.idle_steps
        sampling, updating, metrics, rewards = (
            stream_generator(seed, Stream.REPLAY),
            0.0,
            list[Metrics](),
            list[float](),
        )
        self._actor = self._make_actor(learner, t)
        noise, limits = ActionNoise(self._actor.policy, [seed]), self._limits._replace(first_episode=k)
        for step in iterate_steps(self._simulator, lambda: self._actor, noise, [seed], limits):
            t += 1
            rewards.append(step.result.rewards[0])
            self._reward_check.add(step.result.rewards[0])
            self._store(step)
            if t % s.train_freq:
                continue
            if len(agent.replay_buffer) >= min(s.learning_starts, s.buffer_size):
                before = time.perf_counter()
                learner = self._algorithm.before_updates(learner, agent.replay_buffer)
                rows = agent.replay_buffer.sample(sampling, s.gradient_steps, s.batch_size)
                factor = self._schedule.factor_of(k, t)
                learner, latest = block_until_ready(_update(with_rates(self._algorithm, factor), learner, rows, t))
                metrics.append(latest if factor is None else {**latest, FACTOR: jnp.asarray(factor)})
                updating += time.perf_counter() - before
            self._actor = self._make_actor(learner, t)
        check_returns(np.array([sum(rewards)]), limits)
        discounted = discounted_returns(np.array([rewards]), s.gamma)
        learner = self._algorithm.after_episode(learner, jnp.asarray(discounted, jnp.float32))
        rounds = Rounds(
            returns=np.array([sum(rewards)]),
            discounted_returns=discounted,
            lengths=np.array([len(rewards)]),
            episode_metrics=stacked_metrics([step.result.episode_metrics.get(0, {})], limits),
            update_metrics=_summarize(metrics, s.gradient_steps),
            work={
                "idle_steps": self._simulator.idle_steps - idle,
                "seconds_collecting": time.perf_counter() - started - updating,
                "seconds_updating": updating,
            },
        )
        return learner, rounds

    def close(self) -> None:
        """See `Engine`."""
        self._simulator.close()

    def _make_actor(self, learner: Learner, timesteps: int) -> Actor:
        return make_actor(self._agent.algorithm, learner, self._agent.observation_space, exploring_at=timesteps)

    def _store(self, step: StepBatch) -> None:
        """Add the step to the replay buffer."""
        (terminated,), (done,) = step.result.terminated, step.done
        terminal = bool(terminated or (done and not self._settings.bootstrap_on_truncation))
        layout, buffer = self._algorithm.layout, self._agent.replay_buffer
        mask = None if step.next_action_masks is None else step.next_action_masks[0]
        if mask is not None and not buffer.added:
            buffer.widen(layout.width + len(mask))
        if mask is None and buffer.width > layout.width:  # What was stored before has masks.
            mask = np.ones(buffer.width - layout.width)
        row = layout.row(
            step.observations[0], step.actions[0], step.result.rewards[0], step.next_observations[0], terminal, mask
        )
        if len(row) > buffer.width:
            raise ValueError(
                f"{self._agent.env_name} has action masks, and the replay buffer has transitions without. Train a new "
                "agent, or load one that was saved with replay_buffer=False."
            )
        buffer.add(row)


def _summarize(metrics: list[Metrics], gradient_steps: int) -> dict[str, Any]:
    """The number of updates, and the mean of every other metric over them; the latter only if there were any."""
    means = {name: np.mean([float(m[name]) for m in metrics]) for name in (metrics[0] if metrics else ())}
    return {**means, "updates": len(metrics) * gradient_steps}


@jax.jit
def _update(algorithm: Any, learner: Learner, rows: Any, timesteps: Any) -> tuple[Learner, Metrics]:
    result: tuple[Learner, Metrics] = algorithm.update(learner, algorithm.layout.parts(rows, timesteps))
    return result
