"""What every agent is: settings, a policy and its training state, which learn, can be saved, and act (`acting.py`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import gymnasium as gym
import jax
import numpy as np

from steadyrl.agents import describe, dialled
from steadyrl.agents.acting import ActingAgent
from steadyrl.agents.export.export import export
from steadyrl.agents.loading import load
from steadyrl.agents.networks.description import expanded, function_of
from steadyrl.agents.registry import AGENTS
from steadyrl.agents.representation import represent
from steadyrl.agents.settings import AgentSettings, EnvKind
from steadyrl.agents.settings_choice import SettingsChoice
from steadyrl.base.machine import enable_compilation_cache
from steadyrl.base.seeding import Stream, stream_generator, stream_key
from steadyrl.envs import spaces
from steadyrl.envs.finite import finite_model
from steadyrl.envs.images import large_images
from steadyrl.envs.reward_wrappers import refuse_clipped_rewards
from steadyrl.envs.running_statistics import refuse_running_statistics
from steadyrl.envs.simulator import Simulator
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.rollouts.simulators.choose import checked_engine
from steadyrl.rollouts.worker_count import checked_workers
from steadyrl.training import checkpoint
from steadyrl.training.algorithm import Algorithm, Learner, OffPolicy, acts_in_jax
from steadyrl.training.learn import learn
from steadyrl.training.loggers import Logger
from steadyrl.training.loop import Callback
from steadyrl.training.replay_buffer import ReplayBuffer


class Agent(SettingsChoice, ActingAgent):
    """A policy, its training state, and how to train it further.

    Subclasses define `Settings` and `build`. `agent.settings`, `agent.seed`, `agent.env`, `agent.episodes` and
    `agent.timesteps` say what the agent is and how far it has been trained; `agent.history` holds the latest
    10,000 records of metrics since it was made or loaded, and `agent.replay_buffer` that of methods that have one.
    """

    network_function: Callable[[int], Any] | None = None
    """Makes the networks, if the user passed one as `network`; see `agents.networks.custom`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "Settings" in cls.__dict__:
            describe.document(cls)
            AGENTS[cls.name] = cls

    def __init__(
        self,
        env: AnyEnv | Source,
        *misplaced: Any,
        seed: int = 0,
        engine: str = "auto",
        workers: int | str = 0,
        **settings: Any,
    ) -> None:
        if misplaced:
            raise TypeError(
                f"{type(self).__name__} takes one unnamed argument, the environment; its spaces determine the policy. "
                f"Write {type(self).__name__}(env, seed=0, ...)."
            )
        source = Source.of(env)
        refuse_running_statistics(source.env)
        refuse_clipped_rewards(source.env)
        self.network_function = function_of(settings)
        given = self.chosen(expanded(settings, source.spaces[0]), *source.spaces)
        self._set_up(source, *source.spaces, self.settings_of(given), seed, engine)
        within = "learns within episodes, so they cannot be played elsewhere. Leave workers out."
        obstacle = f"{self.name} {within}" if self.algorithm.batch_kind in ("replay", "online") else None
        policy = getattr(self.algorithm, "policy", None)
        self.workers = checked_workers(workers, source, self.engine, self.settings.n, policy, obstacle)

    def __repr__(self) -> str:
        return represent(self)

    def _set_up(
        self,
        source: Source,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        settings: AgentSettings,
        seed: int,
        engine: str,
        untrained: bool = True,
    ) -> None:
        """Become an untrained agent; or, to be restored from a file, one whose parameters are shapes without values."""
        spaces.check_spaces(observation_space, action_space)
        enable_compilation_cache()
        self.source, self.env = source, source.env
        self.observation_space, self.action_space = observation_space, action_space
        finite = isinstance(self.env, gym.Env) and finite_model(self.env) is not None
        self.env_kind = EnvKind(
            tabular=spaces.is_tabular(observation_space, action_space),
            finite=finite,
            real_observations=spaces.is_real(observation_space),
            real_actions=spaces.is_real(action_space),
            images=bool(large_images(observation_space)),
        )
        self.settings = settings.resolve(self.env_kind)
        self.seed = _checked_seed(seed)
        self.algorithm = self.build()
        self.engine = checked_engine(engine, self.env, self.algorithm.compilable, acts_in_jax(self.algorithm))
        self.workers, self.policy_only = 0, False
        self.learner = self._initial_learner() if untrained else jax.eval_shape(self._initial_learner)
        self.replay_buffer: ReplayBuffer | None = None
        if self.algorithm.batch_kind == "replay":
            layout = cast(OffPolicy, self.algorithm).layout
            self.replay_buffer = ReplayBuffer(layout.width, self.algorithm.settings.buffer_size, layout.dtype)
            if untrained:
                self.replay_buffer.allocate()
        self.iterations = self.episodes = self.timesteps = 0
        self.history: list[dict[str, Any]] = []
        self.config_entries: Mapping[str, str] = {}
        self._simulator: Simulator | None = None
        self._predicting: tuple[Learner, Actor] | None = None
        self._prediction_noise = stream_generator(self.seed, Stream.PREDICTIONS)

    def _initial_learner(self) -> Learner:
        learner = self.algorithm.init(stream_key(self.seed, Stream.PARAMETERS))
        if getattr(self.settings, "normalise_observations", False):
            learner = learner._replace(seen=RunningMoments.empty(spaces.feature_count(self.observation_space)))
        return learner

    def build(self) -> Algorithm:
        """The algorithm, for the agent's settings and spaces."""
        raise NotImplementedError

    def at(self, risk_aversion: float) -> Self:
        """An agent for one lambda of the range that this one has learned for: an ordinary agent, which acts at once."""
        agent = type(self).__new__(type(self))
        agent.network_function = self.network_function
        settings = dialled.settings_at(self, risk_aversion)
        agent._set_up(self.source, self.observation_space, self.action_space, settings, self.seed, self.engine)
        agent.learner = dialled.learner_at(self, float(risk_aversion), agent.learner)
        agent.iterations, agent.episodes, agent.timesteps = self.iterations, self.episodes, self.timesteps
        return agent

    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        total_episodes: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        progress_bar: bool = True,
        loggers: Sequence[str | Logger] = (),
        out: str | os.PathLike[str] | None = None,
        extend: bool = False,
        keep_replay_buffer: bool = False,
    ) -> Self:
        """Learn from at least so many more steps or episodes, in whole rounds.

        A round is `settings.episodes_per_update` episodes, or one for methods with a replay buffer. What was learned
        stays in the agent however `learn` ends.

        Args:
            total_timesteps: How many steps of the environment; or
            total_episodes: how many whole episodes.
            callback: `callback(locals, globals)`, or several, called with the agent as `locals["self"]` and the latest
                `metrics`; training stops if one returns False. It is called after each round, or after about 50
                episodes where rounds are smaller and there is no replay buffer. See `steadyrl.callbacks`.
            progress_bar: Whether to show progress.
            loggers: Where else metrics go: names such as "tensorboard", or objects; see `steadyrl.training.loggers`.
            out: A run folder to write, as `steadyrl train` does, with checkpoints. The same call by an untrained agent
                resumes a run that was interrupted, and loads one that is complete.
            extend: Whether a run in `out` that has a smaller budget is extended to this one. With a constant
                learning rate the result is that of a run with this budget from the start.
            keep_replay_buffer: Whether the run folder keeps the replay buffer at the end, without which a run of DQN or
                TD3 cannot be extended later.
        """
        learn(
            self,
            total_timesteps,
            total_episodes,
            callback=callback,
            progress_bar=progress_bar,
            loggers=loggers,
            out=None if out is None else Path(out),
            extend=extend,
            keep_replay_buffer=keep_replay_buffer,
        )
        self.check_trained()
        return self

    def check_trained(self) -> None:
        """Called when training has ended: a warning if it went wrong in a way that is known."""

    @property
    def memory(self) -> ReplayBuffer | None:
        """The old name of `replay_buffer`."""
        warnings.warn("agent.memory is now called agent.replay_buffer.", DeprecationWarning, stacklevel=2)
        return self.replay_buffer

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        replay_buffer: bool = True,
        policy_only: bool = False,
        memory: bool | None = None,
    ) -> None:
        """Write all of the agent to one file, from which `load` restores it.

        With `replay_buffer=False` without its replay buffer, if it has one: a smaller file, after which training first
        has to fill the buffer anew. With `policy_only=True` with the policy alone: a still smaller file, to share an
        agent that acts and can be evaluated and filmed, but not trained further.
        """
        if policy_only and self.risk_aversion_range is not None:
            raise dialled.needs_a_lambda(self)
        if memory is not None:
            warnings.warn("save(memory=...) is now called save(replay_buffer=...).", DeprecationWarning, stacklevel=2)
            replay_buffer = memory
        checkpoint.write(self, path, replay_buffer, policy_only=policy_only)

    def export(self, path: str | os.PathLike[str], *, action_masks: bool = False) -> Path:
        """Write the learned policy to a file that runs without steadyrl, and return its path.

        "policy.onnx" is an ONNX model (it takes `steadyrl[onnx]` to write it), "policy.npz" the same as arrays, which
        the few lines of examples/run_policy.py run with NumPy alone. Both map a batch of observations, as the
        environment returns them, to the actions of `predict(observations, deterministic=True)`, as it takes them:
        normalization of observations, scaling and clipping of actions are included. Of an agent that has learned for
        a range of lambdas, export `agent.at(lambda)`. A recurrent policy can only be an ONNX model, which takes and
        returns its state. With `action_masks`, an ONNX model has one more input, `action_mask`.
        """
        return export(self, path, action_masks)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], env: AnyEnv | None = None, network: Callable[[int], Any] | None = None
    ) -> Self:
        """The agent in a file or run folder; `env` takes the place of the environment it was saved with.

        `network` is the function that it was made with, if it was made with one.
        """
        agent = load(path, env, network)
        if not isinstance(agent, cls):
            kind = type(agent).__name__
            raise ValueError(f"{path} holds a {kind}, not a {cls.__name__}: use steadyrl.load or {kind}.load.")
        return agent


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: a seed is a whole number from 0 to {2**32 - 1}.")
    return int(seed)
