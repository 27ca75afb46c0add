"""The learned policy in use: actions for observations, and whole episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import dialled
from steadyrl.agents.hidden_state import state_rows
from steadyrl.agents.settings import AgentSettings
from steadyrl.base.seeding import Stream, play_seeds, stream_generator, stream_key
from steadyrl.envs import spaces
from steadyrl.envs.description import describe_env
from steadyrl.envs.finite import finite_model
from steadyrl.envs.jax_env import jax_model
from steadyrl.envs.simulator import Simulator
from steadyrl.envs.source import Source
from steadyrl.rollouts import jax_play
from steadyrl.rollouts.acting import Actor, state_size
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.hidden_states import HiddenStates
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.acting import make_actor
from steadyrl.training.algorithm import Algorithm, Learner, Tabular


class ActingAgent:
    """What an agent does with the policy that it has learned so far."""

    name: ClassVar[str]
    settings: AgentSettings
    source: Source
    env: Any
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    algorithm: Algorithm
    learner: Learner
    engine: str
    _simulator: Simulator | None
    _predicting: tuple[Learner, Actor] | None
    _prediction_noise: np.random.Generator

    @property
    def env_name(self) -> str:
        """The id of the environment, if it has one."""
        described = describe_env(self.env)
        return described["id"] if described else str(self.env)

    @property
    def gamma(self) -> float:
        """The discount factor of the returns that are optimized."""
        return self.settings.gamma

    @property
    def risk_aversion_range(self) -> tuple[float, float] | None:
        """The lowest and the highest lambda of a policy that has learned for a range of them; else None."""
        return dialled.range_of(self)

    @property
    def is_deterministic(self) -> bool:
        """Whether the learned policy draws no random numbers."""
        return self.algorithm.batch_kind == "replay"

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_mask: Any = None,
    ) -> tuple[Any, Any]:
        """The action for one observation, or the actions for a batch of them, and the state to pass with the next one.

        That state is for recurrent policies (`network="gru"`): it holds what they know of the episode so far. Without a
        `state`, and where `episode_start` is True, an episode starts here. Other policies return `state` unchanged.

        With `action_mask`, a number for each action that is 0 if it is not allowed, or an array of such masks for a
        batch, only actions that are allowed.
        """
        if self._predicting is None or self._predicting[0] is not self.learner:
            self._predicting = self.learner, self.actor()
        actor, generator = self._predicting[1], self._prediction_noise
        return self._act(actor, observation, generator, deterministic, action_mask, state, episode_start)

    def act_function(self, seed: int, deterministic: bool = False) -> Callable[..., Any]:
        """From an observation, an action mask or None, and whether an episode starts there, to an action.

        It has a random stream of its own, and keeps the hidden state of a recurrent policy from step to step.
        """
        generator, actor = stream_generator(seed, Stream.EVALUATION), self.actor()
        state: Any = None

        def act(observation: Any, mask: Any = None, episode_start: bool = False) -> Any:
            nonlocal state
            state = None if episode_start else state
            action, state = self._act(actor, observation, generator, deterministic, mask, state)
            return action

        return act

    def actor(self, learner: Learner | None = None, exploring_at: int | None = None) -> Actor:
        """The policy of `learner`, by default its own, in NumPy; with exploration as after so many steps, if given."""
        if self.risk_aversion_range is not None:
            raise dialled.needs_a_lambda(self)
        learner = self.learner if learner is None else learner
        return make_actor(self.algorithm, learner, self.observation_space, exploring_at)

    def play(self, episodes: int, seed: int, deterministic: bool = False) -> Episodes:
        """Whole episodes of the learned policy in the agent's own environment."""
        if self.env is None:
            raise ValueError("this agent has no environment to play in: load it with load(path, env=...).")
        compiled = self.play_compiled(self.env, episodes, seed, deterministic)
        if compiled is not None:
            return compiled
        in_jax = self.play_in_jax(self.env, play_seeds(seed, episodes), deterministic)
        if in_jax is not None:
            return jax_play.joined(in_jax)
        if self._simulator is None:
            self._simulator = simulator_for(self.engine, self.source, self.settings.n)
        limits = Limits(self.env_name, self.settings.max_episode_steps)
        return collect(self._simulator, self.actor(), play_seeds(seed, episodes), limits, deterministic)

    def play_compiled(
        self, env: Any, episodes: int, seed: int, deterministic: bool = False, first: int = 0
    ) -> Episodes | None:
        """Whole episodes, from number `first` on, played in a compiled program; None if there is no such program."""
        model = finite_model(env) if self.engine == "compiled" else None
        if model is None:
            return None
        key = stream_key(seed, Stream.EVALUATION)
        return sample_episodes(model, self.probabilities(deterministic), episodes, key, first)

    def play_in_jax(self, env: Any, seeds: Sequence[int], deterministic: bool = False) -> Iterator[Episodes] | None:
        """A whole episode from each seed, some at a time, in a compiled program of a JAX environment.

        None if it is no such environment.
        """
        model = jax_model(env) if self.engine == "jax" else None
        if model is None:
            return None
        if self.risk_aversion_range is not None:
            raise dialled.needs_a_lambda(self)
        policy = cast(Any, self.algorithm).policy
        return jax_play.play_seeds(model, policy, self.learner.theta, self.learner.seen, seeds, deterministic)

    def probabilities(self, deterministic: bool = False) -> NDArray[np.float64]:
        """[S, A]: the policy as a table; an error if it is a network."""
        if not getattr(self.actor().policy, "takes_states", False):
            table_instead = ", or network='table' where states and actions are Discrete"
            may_be_table = hasattr(self.settings, "network") and self.algorithm.batch_kind != "replay"
            raise TypeError(
                f"{self.name} has learned a network, which has no table of probabilities. "
                f"Use predict{table_instead if may_be_table else ''}."
            )
        table = np.asarray(cast(Tabular, self.algorithm).learned_table(self.learner), np.float64)
        table /= table.sum(axis=-1, keepdims=True)  # 32 bits, exactly normalized in 64.
        return np.asarray(np.eye(table.shape[-1])[table.argmax(axis=-1)]) if deterministic else table

    def _act(
        self,
        actor: Actor,
        observation: Any,
        generator: np.random.Generator,
        deterministic: bool,
        action_mask: Any = None,
        state: Any = None,
        episode_start: Any = None,
    ) -> tuple[Any, Any]:
        """In the form of the action space, for one observation or for any shape of many; and the next hidden state."""
        rows, shape = spaces.as_batch(self.observation_space, observation)
        masks = None if action_mask is None else spaces.as_masks(self.action_space, action_mask, shape)
        size = state_size(actor.policy)
        if size:
            states = HiddenStates(state_rows(state, episode_start, shape, size), np.arange(len(rows)))
            actor = dataclasses.replace(actor, states=states)
        noise = None if deterministic else actor.policy.noise(generator, len(rows))
        actions = actor.to_space(actor.act(actor.features(rows), noise, masks))
        state = states.read().reshape(*shape, size) if size else state
        return actions.reshape((*shape, *actions.shape[1:]))[()], state
