"""What every agent can do: learn, predict, play, save and load."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import gymnasium as gym
import jax
import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import describe, dialled
from steadyrl.agents.networks.description import CUSTOM, expanded, function_of
from steadyrl.agents.registry import AGENTS
from steadyrl.agents.representation import represent
from steadyrl.agents.settings import AgentSettings, EnvKind, unknown_setting
from steadyrl.base.machine import enable_compilation_cache
from steadyrl.base.seeding import Stream, play_seeds, stream_generator, stream_key
from steadyrl.base.settings import canonical
from steadyrl.envs import spaces
from steadyrl.envs.description import describe_env, source_from
from steadyrl.envs.finite import finite_model
from steadyrl.envs.images import large_images
from steadyrl.envs.jax_env import jax_model
from steadyrl.envs.running_statistics import refuse_running_statistics
from steadyrl.envs.simulator import Simulator
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.rollouts import jax_play
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.rollouts.simulators.choose import UnsupportedEngineError, checked_engine, simulator_for
from steadyrl.rollouts.worker_count import checked_workers
from steadyrl.training import checkpoint
from steadyrl.training.acting import make_actor
from steadyrl.training.algorithm import Algorithm, Learner, OffPolicy, Tabular, acts_in_jax
from steadyrl.training.checkpoint import AgentFile
from steadyrl.training.learn import learn
from steadyrl.training.loggers import Logger
from steadyrl.training.loop import Callback
from steadyrl.training.replay_buffer import ReplayBuffer
from steadyrl.training.run_folder import read_agent

_MAX_LAYERS = 100
"""Of a network in a file."""


class Agent:
    """A policy, its training state, and how to train it further.

    Subclasses define `Settings` and `build`. `agent.settings`, `agent.seed`, `agent.env`, `agent.episodes` and
    `agent.timesteps` say what the agent is and how far it has been trained; `agent.history` holds the latest
    10,000 records of metrics since it was made or loaded, and `agent.replay_buffer` that of methods that have one.
    """

    name: ClassVar[str]
    """What the command line and checkpoints call this agent."""
    Settings: ClassVar[type[AgentSettings]]
    """Its settings; where there is a choice, with the default one."""
    settings_by_choice: ClassVar[Mapping[str, type[AgentSettings]]] = {}
    """The settings with each way to maximize the mean, or each solver, where there is a choice."""
    choice: ClassVar[str] = "mean"
    """The setting that decides between them."""
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
        self.network_function = function_of(settings)
        given = self.chosen(expanded(settings, source.spaces[0]), *source.spaces)
        self._set_up(source, *source.spaces, self.settings_of(given), seed, engine)
        within = "learns within episodes, so they cannot be played elsewhere. Leave workers out."
        obstacle = f"{self.name} {within}" if self.algorithm.batch_kind in ("replay", "online") else None
        self.workers = checked_workers(workers, source, self.engine, self.settings.n, obstacle)

    def __repr__(self) -> str:
        return represent(self)

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """The settings that are `given`, plus those that decide which other settings there are."""
        return given

    @classmethod
    def settings_classes(cls) -> tuple[type[AgentSettings], ...]:
        """All settings classes, the default one first."""
        return (cls.Settings, *(kind for kind in cls.settings_by_choice.values() if kind is not cls.Settings))

    @classmethod
    def settings_class(cls, given: Mapping[str, Any]) -> type[AgentSettings]:
        """The class that the settings `given` belong to; an error for one that belongs to another choice."""
        chosen = given.get(cls.choice)
        if isinstance(chosen, str) and cls.settings_by_choice and chosen not in cls.settings_by_choice:
            raise ValueError(f"{cls.choice}={chosen}: it is one of {', '.join(cls.settings_by_choice)}.")
        kind = cls.settings_by_choice.get(str(chosen), cls.Settings)
        every = set().union(*map(_names, cls.settings_classes()))
        for name in canonical(given, (kind, *cls.settings_classes()), warn=False):
            if name in _names(kind):
                continue
            for other_choice, other in cls.settings_by_choice.items():
                if name in _names(other):
                    with_it = f"{cls.name} with {cls.choice}={other_choice!r}"
                    raise ValueError(f"{name}: it is a setting of {with_it}. Set that too, or leave it out.")
            raise ValueError(unknown_setting(name, every, kind.hints_for_other_names()))
        return kind

    @classmethod
    def settings_of(cls, given: Mapping[str, Any]) -> AgentSettings:
        """From names and values."""
        return cls.settings_class(given).of(given)

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
        self.workers = 0
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

    def at(self, risk_aversion: float) -> Self:
        """An agent for one lambda of the range that this one has learned for: an ordinary agent, which acts at once."""
        agent = type(self).__new__(type(self))
        agent.network_function = self.network_function
        settings = dialled.settings_at(self, risk_aversion)
        agent._set_up(self.source, self.observation_space, self.action_space, settings, self.seed, self.engine)
        agent.learner = dialled.learner_at(self, float(risk_aversion), agent.learner)
        agent.iterations, agent.episodes, agent.timesteps = self.iterations, self.episodes, self.timesteps
        return agent

    @property
    def is_deterministic(self) -> bool:
        """Whether the learned policy draws no random numbers."""
        return self.algorithm.batch_kind == "replay"

    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        total_episodes: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        progress_bar: bool = True,
        loggers: Sequence[str | Logger] = (),
        out: str | os.PathLike[str] | None = None,
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
        """
        learn(
            self,
            total_timesteps,
            total_episodes,
            callback=callback,
            progress_bar=progress_bar,
            loggers=loggers,
            out=None if out is None else Path(out),
        )
        self.check_trained()
        return self

    def check_trained(self) -> None:
        """Called when training has ended: a warning if it went wrong in a way that is known."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_mask: Any = None,
    ) -> tuple[Any, Any]:
        """The action for one observation, or the actions for a batch of them, and `state` unchanged.

        With `action_mask`, a number for each action that is 0 if it is not allowed, or an array of such masks for a
        batch, only actions that are allowed.
        """
        if self._predicting is None or self._predicting[0] is not self.learner:
            self._predicting = self.learner, self.actor()
        actor, generator = self._predicting[1], self._prediction_noise
        return self._act(actor, observation, generator, deterministic, action_mask), state

    def act_function(self, seed: int, deterministic: bool = False) -> Callable[..., Any]:
        """From an observation, and an action mask or None, to an action; with a random stream of its own."""
        generator, actor = stream_generator(seed, Stream.EVALUATION), self.actor()
        return lambda observation, mask=None: self._act(actor, observation, generator, deterministic, mask)

    def actor(self, learner: Learner | None = None, exploring_at: int | None = None) -> Actor:
        """The policy of `learner`, by default its own, in NumPy; with exploration as after so many steps, if given."""
        if self.risk_aversion_range is not None:
            raise dialled.needs_a_lambda(self)
        learner = self.learner if learner is None else learner
        return make_actor(self.algorithm, learner, self.observation_space, exploring_at)

    def play(self, episodes: int, seed: int, deterministic: bool = False) -> Episodes:
        """Whole episodes of the learned policy in the agent's own environment."""
        compiled = self.play_compiled(self.env, episodes, seed, deterministic)
        compiled = compiled or self.play_in_jax(self.env, play_seeds(seed, episodes), deterministic)
        if compiled is not None:
            return compiled
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

    def play_in_jax(self, env: Any, seeds: Sequence[int], deterministic: bool = False) -> Episodes | None:
        """A whole episode from each seed, played in a compiled program of a JAX environment; None if it is no such."""
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
            raise TypeError(
                f"{self.name} has learned a network, which has no table of probabilities. "
                f"Use predict{table_instead if hasattr(self.settings, 'network') else ''}."
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
    ) -> Any:
        """In the form of the action space: for one observation, or for any shape of many."""
        rows, shape = spaces.as_batch(self.observation_space, observation)
        masks = None if action_mask is None else spaces.as_masks(self.action_space, action_mask, shape)
        noise = None if deterministic else actor.policy.noise(generator, len(rows))
        actions = actor.to_space(actor.act(actor.features(rows), noise, masks))
        return actions.reshape((*shape, *actions.shape[1:]))[()]

    @property
    def memory(self) -> ReplayBuffer | None:
        """The old name of `replay_buffer`."""
        warnings.warn("agent.memory is now called agent.replay_buffer.", DeprecationWarning, stacklevel=2)
        return self.replay_buffer

    def save(self, path: str | os.PathLike[str], *, replay_buffer: bool = True, memory: bool | None = None) -> None:
        """Write all of the agent to one file, from which `load` restores it.

        With `replay_buffer=False` without its replay buffer, if it has one: a smaller file, after which training first
        has to fill the buffer anew.
        """
        if memory is not None:
            warnings.warn("save(memory=...) is now called save(replay_buffer=...).", DeprecationWarning, stacklevel=2)
            replay_buffer = memory
        checkpoint.write(self, path, replay_buffer)

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


def load(path: str | os.PathLike[str], env: AnyEnv | None = None, network: Callable[[int], Any] | None = None) -> Agent:
    """The agent in a file or run folder, in `env` or else in the environment that it was saved with, if possible.

    A file may come from anybody, so only environments that installed packages have registered with Gymnasium are made
    from it. For others the agent's `env` is None: pass `env`. A file has no code of networks either: for an agent that
    was made with a function as `network`, pass that function.
    """
    return from_file(read_agent(Path(path)), env, network)


def from_file(file: AgentFile, env: AnyEnv | None = None, network: Callable[[int], Any] | None = None) -> Agent:
    """The agent in a file that was read; see `load`."""
    path, header = file.path, file.header
    if header["agent"] not in AGENTS:
        raise ValueError(f"{path} holds an agent {header['agent']!r} that this version does not know.")
    agent = AGENTS[header["agent"]].__new__(AGENTS[header["agent"]])
    agent.network_function = network
    try:
        own = spaces.from_json(header["observation_space"]), spaces.from_json(header["action_space"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Settings in older files have their old names.
            settings = agent.settings_of(header["settings"])
    except ValueError as error:
        raise ValueError(f"{path} does not hold a {header['agent']} agent: {error}") from None
    custom = getattr(settings, "network", None) == CUSTOM
    if custom and network is None:
        raise ValueError(f"{path} holds an agent whose network is a function: pass it, as load(path, network=...).")
    if network is not None and not custom:
        raise ValueError(f"{path} holds an agent whose network is no function. Leave network out.")
    _check_sizes(file, own, settings)
    source = Source.of(env) if env is not None else source_from(header["env"])
    refuse_running_statistics(source.env)
    if source.env is not None and not all(map(spaces.same_spaces, source.spaces, own)):
        raise ValueError(
            "{} was trained on {} and {}, but this environment has {} and {}. Pass one with the same spaces.".format(
                path, *map(spaces.shown_space, (*own, *source.spaces))
            )
        )
    try:
        try:
            agent._set_up(source, *own, settings, header["seed"], header["engine"], untrained=False)
        except UnsupportedEngineError:
            # Another environment may take another engine; the same one without its engine's package leaves a policy.
            source, engine = (source, "auto") if env is not None else (Source(None, None), header["engine"])
            agent._set_up(source, *own, settings, header["seed"], engine, untrained=False)
    except ValueError as error:
        raise ValueError(f"{path} does not hold a {header['agent']} agent: {error}") from None
    checkpoint.restore(agent, file)
    return agent


def _check_sizes(file: AgentFile, own: tuple[gym.Space[Any], gym.Space[Any]], settings: AgentSettings) -> None:
    """Refuse a header that asks for more than the file's own arrays, before anything of that size is built.

    Every input and output has at least one parameter, in networks and tables. The widths of hidden layers are compared
    when shapes are, but each layer takes time.
    """
    numbers = sum(array.size for array in file.arrays.values())
    layers = max((len(value) for value in vars(settings).values() if isinstance(value, tuple)), default=0)
    if max(map(spaces.feature_count, own)) > numbers or layers > _MAX_LAYERS:
        raise checkpoint.altered(file.path, file.header)


def _names(settings: type[AgentSettings]) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: a seed is a whole number from 0 to {2**32 - 1}.")
    return int(seed)
