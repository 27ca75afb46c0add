"""Episodes whose steps go into a memory, and updates from it after every few of them: the loop of DQN and TD3."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.behaviour import Noise
from steadyrl.collector import moments_of, small_products
from steadyrl.engines import Rounds, check_finite, episode_seed
from steadyrl.memory import Memory
from steadyrl.returns import discounted_returns
from steadyrl.streams import Stream

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent
    from steadyrl.agents.algorithm import Learner, Replaying


class ReplayEngine:
    """An `Engine` for one agent; a round is one episode.

    All that is random in it comes from the episode's seed, but the smoothing of TD3, which comes from the number of the
    update.

    Updates happen when the number of steps since the start of learning is a multiple of `train_freq`, whether or not
    an episode ends there, and until then the policy acts as it was.
    """

    most_rounds = 1

    def __init__(self, agents: list[Agent]) -> None:
        (self.agent,) = agents
        self.algorithm = cast("Replaying", self.agent.algorithm)

    def advance(self, learners: Learner, first: int, count: int, timesteps: int) -> tuple[Learner, Rounds]:
        """See `Engine`."""
        memory = self.agent.memory
        assert memory is not None
        with small_products():
            learner, rounds = self._episode(_first(learners), memory, first)
        check_finite(self.agent, learner)
        return _alone(learner), jax.tree.map(lambda x: np.asarray(x)[None, None], rounds)

    def _episode(self, learner: Learner, memory: Memory, k: int) -> tuple[Learner, Rounds]:
        """Episode `k`: act, remember, and update on the way."""
        agent, algorithm, s = self.agent, self.algorithm, self.algorithm.settings
        started, updating, updates, t = time.perf_counter(), 0.0, 0, agent.timesteps
        seed, simulator = episode_seed(agent.seed, k), agent.simulator()
        draws, idle = np.random.default_rng([seed, Stream.REPLAY]), simulator.idle_steps
        self.behaviour = agent.behaviour(learner, exploring_at=t)
        noise, rewards = Noise(self.behaviour.policy, [seed]), []
        place = (k, agent.env_name, s.longest_episode)
        for moment in moments_of(simulator, lambda: self.behaviour, noise, [seed], *place):
            t += 1
            (reward,), (terminated,) = moment.steps.rewards, moment.steps.terminated
            ends = bool(terminated or (s.time_out_ends and moment.over[0]))
            row = algorithm.layout.row(moment.seen[0], moment.actions[0], reward, moment.seen_after[0], ends)
            memory.add(row)
            rewards.append(reward)
            if t % s.train_freq:
                continue
            if len(memory) >= min(s.learning_starts, s.buffer_size):
                before = time.perf_counter()
                drawn = memory.sample(draws, s.updates, s.batch_size)
                learner = jax.block_until_ready(_update(algorithm, learner, drawn, t))  # type: ignore[no-untyped-call]
                updates += s.updates
                updating += time.perf_counter() - before
            self.behaviour = agent.behaviour(learner, exploring_at=t)
        discounted = discounted_returns(np.array([rewards]), s.gamma)
        learner = algorithm.after_episode(learner, jnp.asarray(discounted, jnp.float32))
        rounds = Rounds(
            returns=np.array([sum(rewards)]),
            discounted_returns=discounted,
            lengths=np.array([len(rewards)]),
            facts={name: np.array([value]) for name, value in moment.steps.facts.get(0, {}).items()},
            updates=updates,
            work={
                "idle_steps": simulator.idle_steps - idle,
                "seconds_collecting": time.perf_counter() - started - updating,
                "seconds_updating": updating,
            },
        )
        return learner, rounds


@partial(jax.jit, static_argnames="algorithm")
def _update(algorithm: Replaying, learner: Learner, rows: Any, timesteps: Any) -> Learner:
    return algorithm.update(learner, algorithm.layout.parts(rows, timesteps))[0]


# Compiled, for a learner has many small arrays and an episode may be short.
_first = jax.jit(lambda learners: jax.tree.map(lambda x: x[0], learners))
_alone = jax.jit(lambda learner: jax.tree.map(lambda x: x[None], learner))
