"""What every agent can do: learn, predict, save and load."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl import checkpoint
from steadyrl.agents.algorithm import Algorithm, Learner, Tabular
from steadyrl.agents.episodic import Episodic, EpisodicSettings
from steadyrl.agents.ppo_clip import PPOClip
from steadyrl.agents.ppo_settings import PPOSettings
from steadyrl.agents.replay import memory_of
from steadyrl.agents.settings import AgentSettings, PolicyGradientSettings
from steadyrl.agents.vpg import VPG, VPGSettings
from steadyrl.behaviour import Behaviour
from steadyrl.collector import collect
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.episodes import Actor, Episodes
from steadyrl.naming import unknown
from steadyrl.networks import Policy, SoftmaxTable, Value, networks_for
from steadyrl.observing import Seen
from steadyrl.risk import RiskMeasure
from steadyrl.rollout import finite_face, sample_episodes
from steadyrl.simulators.choose import checked_engine, simulator_for
from steadyrl.simulators.simulator import Simulator
from steadyrl.spaces import as_batch, check_spaces, feature_count, is_tabular
from steadyrl.streams import Stream, key_of

Callback = Callable[[dict[str, Any], dict[str, Any]], Any]
"""`callback(locals, globals)`, as in Stable-Baselines3: `locals["self"]` is the agent, and only False stops."""


class Agent:
    """A policy, what it has learned, and how it goes on learning.

    Subclasses say which settings they take and which measure of risk they penalise. `agent.settings`, `agent.seed`,
    `agent.env`, `agent.episodes` and `agent.timesteps` say what the agent is and how far it has come;
    `agent.history` holds the metrics of each round of updates since it was made or loaded, and `agent.memory` the
    replay memory of methods that have one.
    """

    name: ClassVar[str]
    """What the command line and checkpoints call this agent."""
    Settings: ClassVar[type[AgentSettings]]
    """What it can be told; where there is a choice, with the default one."""
    settings_by_choice: ClassVar[Mapping[str, type[AgentSettings]]] = {}
    """The settings with each way to maximise the mean, or each solver, where there is a choice."""
    choice: ClassVar[str] = "mean"
    """The setting that decides between them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "Settings" in cls.__dict__:
            cls.__signature__ = _signature(cls)  # type: ignore[attr-defined]
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{_described(cls)}\n"

    def __init__(
        self, env: AnyEnv | Source, *misplaced: Any, seed: int = 0, engine: str = "auto", **settings: Any
    ) -> None:
        if misplaced:
            raise TypeError(
                f"{type(self).__name__} takes one unnamed argument, the environment; its spaces say which policy. "
                f"Write {type(self).__name__}(env, seed=0, ...)."
            )
        source = Source.of(env)
        given = self.chosen(settings, *source.spaces)
        self._set_up(source, *source.spaces, self.settings_of(given), seed, engine)

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """The settings that are `given`, with those decided that the other settings depend on."""
        return given

    @classmethod
    def settings_class(cls, given: Mapping[str, Any]) -> type[AgentSettings]:
        """Which settings those that are `given` belong to; an error for one that belongs to another choice."""
        chosen = given.get(cls.choice)
        if isinstance(chosen, str) and cls.settings_by_choice and chosen not in cls.settings_by_choice:
            raise ValueError(f"{cls.choice}={chosen}: it is one of {', '.join(cls.settings_by_choice)}.")
        kind = cls.settings_by_choice.get(str(chosen), cls.Settings)
        for other_choice, other in cls.settings_by_choice.items():
            for name in given.keys() & (_names(other) - _names(kind)):
                with_it = f"{cls.name} with {cls.choice}={other_choice!r}"
                raise ValueError(f"{name}: it is a setting of {with_it}. Set that too, or leave it out.")
        every = set().union(*map(_names, (cls.Settings, *cls.settings_by_choice.values())))
        for name in given.keys() - every:
            raise ValueError(unknown("setting", name, every, kind.other_names()))
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
    ) -> None:
        check_spaces(observation_space, action_space)
        tabular = is_tabular(observation_space, action_space)
        self._source, self.env = source, source.env
        self.observation_space, self.action_space = observation_space, action_space
        finite = isinstance(self.env, gym.Env) and finite_face(self.env) is not None
        self.settings = settings.completed(tabular, finite)
        self.seed = _checked_seed(seed)
        self.algorithm = self.build()
        self.engine = checked_engine(engine, self.env, self.algorithm.compilable)
        self.learner: Learner = self.algorithm.init(key_of(self.seed, Stream.PARAMETERS))
        if getattr(self.settings, "normalise_observations", False):
            self.learner = self.learner._replace(seen=Seen.nothing(feature_count(observation_space)))
        self.memory = memory_of(self.algorithm)
        self.iterations = self.episodes = self.timesteps = 0
        self.history: list[dict[str, Any]] = []
        self._simulator: Simulator | None = None
        self._known: tuple[Any, Behaviour] | None = None
        self._predictions = np.random.default_rng([self.seed, Stream.PREDICTIONS])

    def build(self) -> Algorithm:
        """The method, for the agent's settings and spaces."""
        s = self.settings
        assert isinstance(s, PolicyGradientSettings), "other methods build themselves"
        shape = (s.network, s.hidden, s.initial_log_std)
        policy, value = networks_for(self.observation_space, self.action_space, *shape)
        return self.mean_part(policy, value, self._measure())

    def _measure(self) -> RiskMeasure | None:
        # Without aversion to risk there is no risk part: it is REINFORCE or PPO, bit for bit (deviation 12).
        measure = self.risk_measure() if getattr(self.settings, "risk_aversion", 0.0) else None
        if measure and self.settings.n < measure.least_episodes:
            raise ValueError(
                f"episodes_per_update={self.settings.n}: {self.name} compares the returns of a batch "
                f"with each other and needs at least {measure.least_episodes} of them. Raise episodes_per_update."
            )
        return measure

    def risk_measure(self) -> RiskMeasure | None:
        """What is penalised of the return, times `settings.risk_aversion`; None for nothing."""
        return None

    def mean_part(self, policy: Policy, value: Value, measure: RiskMeasure | None) -> Algorithm:
        """How the mean is maximised, with `measure` in its slot for risk: the settings say which way."""
        s, risk_aversion = self.settings, getattr(self.settings, "risk_aversion", 0.0)
        if isinstance(s, PPOSettings):
            return PPOClip(policy, measure, risk_aversion, s, value)
        if isinstance(s, EpisodicSettings):
            return Episodic(policy, measure, risk_aversion, s)
        assert isinstance(s, VPGSettings)
        return VPG(policy, measure, risk_aversion, s, value)

    @property
    def env_name(self) -> str:
        """The id of the environment, if it has one."""
        described = checkpoint.describe_env(self.env)
        return described["id"] if described else str(self.env)

    @property
    def names_one_action(self) -> bool:
        """Whether the policy as it was learned leaves nothing to chance."""
        return self.algorithm.material == "replayed"

    @property
    def gamma(self) -> float:
        """The discount factor of the returns that are optimised."""
        return self.settings.gamma

    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        total_episodes: int | None = None,
        callback: Callback | None = None,
        progress_bar: bool = True,
    ) -> Self:
        """Learn from at least so many more steps or episodes, in whole rounds.

        A round is `settings.episodes_per_update` episodes, or one for methods with a replay memory.

        `callback(locals, globals)` is called with the agent as `locals["self"]` and the latest `metrics`; learning
        stops if it returns False. It is called after each round, or after about 50 episodes where rounds are smaller
        and there is no replay memory. What was learned until then stays in the agent however `learn` ends.
        """
        from steadyrl.training import learn_together

        learn_together(
            [self],
            total_timesteps,
            total_episodes=total_episodes,
            callback=callback,
            progress_bar=progress_bar,
        )
        return self

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The action for one observation, or the actions for a batch of them, and `state` as it came."""
        return self._act(self._known_behaviour(), observation, self._predictions, deterministic), state

    def actor(self, seed: int, deterministic: bool = False) -> Actor:
        """The policy as it was learned, with a random stream of its own."""
        generator, behaviour = np.random.default_rng([seed, Stream.EVALUATION]), self.behaviour()
        return lambda observation, episode_start: self._act(behaviour, observation, generator, deterministic)

    def behaviour(self, learner: Learner | None = None, exploring_at: int | None = None) -> Behaviour:
        """The policy in NumPy: as it was learned, or as it explores after so many steps; of `learner`, if given."""
        learner = self.learner if learner is None else learner
        policy, parameters = self.algorithm.in_numpy(learner, exploring_at)
        seen = Seen(*map(np.asarray, learner.seen)) if learner.seen else None
        return Behaviour(policy, parameters, None if isinstance(policy, SoftmaxTable) else self.observation_space, seen)

    def play(self, episodes: int, seed: int, deterministic: bool = False) -> Episodes:
        """Whole episodes in the agent's own environment, with the policy as it was learned."""
        rolled = self.rollout(self.env, episodes, seed, deterministic)
        if rolled is not None:
            return rolled
        seeds = np.random.SeedSequence([seed, Stream.EVALUATION]).generate_state(episodes).tolist()
        return self.collect(self.behaviour(), seeds, deterministic)

    def collect(self, behaviour: Behaviour, seeds: list[int], deterministic: bool = False, first: int = 0) -> Episodes:
        """One episode of the agent's environment from each seed; `first` is the number of the first, for errors."""
        longest = self.settings.longest_episode
        return collect(self.simulator(), behaviour, seeds, self.env_name, longest, deterministic, first)

    def simulator(self) -> Simulator:
        """Where the agent's episodes happen."""
        if self._simulator is None:
            size = self.settings.n
            self._simulator = simulator_for(self.engine, self._source, size)
        return self._simulator

    def rollout(self, env: gym.Env[Any, Any], episodes: int, seed: int, deterministic: bool = False) -> Episodes | None:
        """Whole episodes played compiled, for evaluation; None if the agent or the environment cannot."""
        face = finite_face(env) if self.engine == "compiled" else None
        if face is None:
            return None
        return sample_episodes(face, self.probabilities(deterministic), episodes, key_of(seed, Stream.EVALUATION))

    def probabilities(self, deterministic: bool = False) -> NDArray[np.float64]:
        """[S, A]: the policy as a table, if it is one."""
        assert hasattr(self.algorithm, "learned"), "only tables can be written down"
        table = _rows_sum_to_one(cast(Tabular, self.algorithm).learned(self.learner))
        return np.asarray(np.eye(table.shape[-1])[table.argmax(axis=-1)]) if deterministic else table

    def _act(self, behaviour: Behaviour, observation: Any, generator: np.random.Generator, deterministic: bool) -> Any:
        """In the form of the action space: for one observation, or for any shape of many."""
        rows, shape = as_batch(self.observation_space, observation)
        noise = None if deterministic else behaviour.policy.noise(generator, len(rows))
        actions = behaviour.policy.to_space(behaviour.act(behaviour.see(rows), noise))
        return actions.reshape((*shape, *actions.shape[1:]))[()]

    def _known_behaviour(self) -> Behaviour:
        """`behaviour`, made anew when the parameters have changed."""
        if self._known is None or self._known[0] is not self.learner:
            self._known = (self.learner, self.behaviour())
        return self._known[1]

    def save(self, path: str | os.PathLike[str], *, memory: bool = True) -> None:
        """Write all of the agent to one file, from which `load` goes on.

        With `memory=False` without its replay memory, if it has one: a smaller file, after which learning goes on when
        the memory is filled anew.
        """
        checkpoint.write(self, path, memory)

    @classmethod
    def load(cls, path: str | os.PathLike[str], env: AnyEnv | None = None) -> Self:
        """The agent in a file; `env` takes the place of the environment it was saved with."""
        agent = checkpoint.read(path, env)
        if not isinstance(agent, cls):
            kind = type(agent).__name__
            raise ValueError(f"{path} holds a {kind}, not a {cls.__name__}: use steadyrl.load or {kind}.load.")
        return agent


def _names(settings: type[AgentSettings]) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}


def _described(agent: type[Agent]) -> str:
    """Every setting with its sentence, for help() and `steadyrl agents`."""
    kinds = agent.settings_by_choice or {"": agent.Settings}
    return "\n\n".join(
        f"Settings{f' with {agent.choice}={chosen!r}' if chosen else ''}:\n\n{kind.describe()}"
        for chosen, kind in kinds.items()
    )


def _signature(agent: type[Agent]) -> inspect.Signature:
    """`env`, `seed`, `engine` and every setting, for help() and editors; defaults are those of the default choice."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("env", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=AnyEnv),
        inspect.Parameter("seed", keyword, default=0, annotation=int),
        inspect.Parameter("engine", keyword, default="auto", annotation=str),
    ]
    kinds = (*reversed([*agent.settings_by_choice.values()]), agent.Settings)
    fields = {field.name: field for kind in kinds for field in dataclasses.fields(kind)}
    return inspect.Signature(
        [*own, *(inspect.Parameter(f.name, keyword, default=f.default, annotation=f.type) for f in fields.values())]
    )


def _rows_sum_to_one(table: Any) -> NDArray[np.float64]:
    """A table of 32 bits in 64, exactly normalised."""
    p = np.asarray(table, np.float64)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: a seed is a whole number from 0 to {2**32 - 1}.")
    return int(seed)
