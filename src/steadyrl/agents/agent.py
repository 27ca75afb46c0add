"""What every agent can do: learn, predict, save and load."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from steadyrl import checkpoint
from steadyrl.agents.algorithm import Algorithm, Learner
from steadyrl.agents.settings import AgentSettings
from steadyrl.agents.vpg import VPG, VPGSettings
from steadyrl.engines import ENGINES
from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.episodes import Actor, Episodes, collect
from steadyrl.naming import unknown
from steadyrl.networks import SoftmaxTable, ValueTable
from steadyrl.risk import RiskMeasure
from steadyrl.rollout import finite_face, sample_episodes
from steadyrl.streams import Stream, key_of

Callback = Callable[[dict[str, Any], dict[str, Any]], Any]
"""`callback(locals, globals)`, as in Stable-Baselines3: `locals["self"]` is the agent, and only False stops."""


class Agent(ABC):
    """A policy, what it has learned, and how it goes on learning.

    Subclasses say which settings they take and which measure of risk they penalise. `agent.settings`, `agent.seed`,
    `agent.env`, `agent.episodes` and `agent.timesteps` say what the agent is and how far it has come;
    `agent.history` holds the metrics of each round of updates since it was made or loaded.
    """

    name: ClassVar[str]
    """What the command line and checkpoints call this agent."""
    Settings: ClassVar[type[AgentSettings]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "Settings" in cls.__dict__:
            cls.__signature__ = _signature(cls.Settings)  # type: ignore[attr-defined]
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nSettings:\n\n{cls.Settings.describe()}\n"

    def __init__(self, env: EnvLike, *misplaced: Any, seed: int = 0, engine: str = "auto", **settings: Any) -> None:
        if misplaced:
            raise TypeError(
                f"{type(self).__name__} takes one unnamed argument, the environment; its spaces say which policy. "
                f"Write {type(self).__name__}(env, seed=0, ...)."
            )
        made = resolve(env)
        self._set_up(made, made.observation_space, made.action_space, self.Settings.of(settings), seed, engine)

    def _set_up(
        self,
        env: gym.Env[Any, Any] | None,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        settings: AgentSettings,
        seed: int,
        engine: str,
    ) -> None:
        self.env = env
        self.observation_space, self.action_space = observation_space, action_space
        self.settings = settings
        self.seed = _checked_seed(seed)
        self.engine = _checked_engine(engine, env)
        S, A = _table_size(observation_space, "observation"), _table_size(action_space, "action")
        risk_aversion = getattr(settings, "risk_aversion", 0.0)
        # Without aversion to risk there is no risk part: the program is REINFORCE's, bit for bit (deviation 12).
        measure = self.risk_measure()
        if not risk_aversion:
            measure = None
        if measure and settings.episodes_per_update < measure.least_episodes:
            raise ValueError(
                f"episodes_per_update={settings.episodes_per_update}: {self.name} compares the returns of a batch with "
                f"each other and needs at least {measure.least_episodes} of them. Raise episodes_per_update."
            )
        self.algorithm = self.mean_part(SoftmaxTable(S, A), ValueTable(S), measure)
        self.learner: Learner = self.algorithm.init(key_of(self.seed, Stream.PARAMETERS))
        self.iterations = self.episodes = self.timesteps = 0
        self.history: list[dict[str, Any]] = []
        self._known: tuple[Any, Any, Any] = (None, None, None)
        self._predictions = np.random.default_rng([self.seed, Stream.PREDICTIONS])

    @abstractmethod
    def risk_measure(self) -> RiskMeasure | None:
        """What is penalised, times `settings.risk_aversion`; None for nothing."""

    def mean_part(self, policy: SoftmaxTable, value: ValueTable, measure: RiskMeasure | None) -> Algorithm:
        """How the mean is maximised, with `measure` in its slot for risk; Algorithm 1 unless a method has its own."""
        assert isinstance(self.settings, VPGSettings)
        return VPG(policy, value, measure, getattr(self.settings, "risk_aversion", 0.0), self.settings)

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
        """Learn from at least so many more steps or episodes, in whole rounds of `settings.episodes_per_update`.

        `callback(locals, globals)` is called after each round, as in Stable-Baselines3, with the agent as
        `locals["self"]` and the round's `metrics`; learning stops if it returns False. What has been learned stays in
        the agent however `learn` ends.
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
        return self._draw(observation, self._predictions, self._known_probabilities(deterministic)), state

    def actor(self, seed: int, deterministic: bool = False, exploring: bool = False) -> Actor:
        """The policy with a random stream of its own: as it was learned, or as it explores while it learns."""
        generator = np.random.default_rng([seed, Stream.EVALUATION])
        table = self.probabilities(deterministic)
        if exploring:
            table = _rows_sum_to_one(self.algorithm.acting(self.learner))
        return lambda observation, episode_start: self._draw(observation, generator, table)

    def play(self, episodes: int, seed: int, deterministic: bool = False) -> Episodes:
        """Whole episodes in the agent's own environment, with the policy as it was learned."""
        assert self.env is not None
        rolled = self.rollout(self.env, episodes, seed, deterministic)
        if rolled is not None:
            return rolled
        seeds = np.random.SeedSequence([seed, Stream.EPISODES]).generate_state(episodes)
        return collect(self.env, self.actor(seed, deterministic), seeds.tolist())

    def rollout(self, env: gym.Env[Any, Any], episodes: int, seed: int, deterministic: bool = False) -> Episodes | None:
        """Whole episodes played compiled, for evaluation; None if the agent or the environment cannot."""
        face = finite_face(env) if self.engine == "compiled" else None
        if face is None:
            return None
        return sample_episodes(face, self.probabilities(deterministic), episodes, key_of(seed, Stream.EVALUATION))

    def probabilities(self, deterministic: bool = False) -> NDArray[np.float64]:
        """[S, A]: the policy as a table."""
        table = _rows_sum_to_one(self.algorithm.learned(self.learner))
        return np.asarray(np.eye(table.shape[-1])[table.argmax(axis=-1)]) if deterministic else table

    def _draw(self, observation: Any, generator: np.random.Generator, table: NDArray[np.float64]) -> Any:
        s = np.asarray(observation)
        if not np.issubdtype(s.dtype, np.integer) or np.any((s < 0) | (s >= len(table))):
            raise ValueError(
                f"observation {observation!r} is not in {self.observation_space}: "
                "pass the number of a state, or an array of such numbers."
            )
        action = (generator.random(s.shape)[..., None] >= table[s].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
        return np.int64(action) if s.ndim == 0 else action

    def _known_probabilities(self, deterministic: bool) -> NDArray[np.float64]:
        """`probabilities`, computed anew when the parameters have changed."""
        theta, asked, table = self._known
        if theta is not self.learner.theta or asked != deterministic:
            table = self.probabilities(deterministic)
            self._known = (self.learner.theta, deterministic, table)
        return np.asarray(table)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of the agent to one file, from which `load` goes on."""
        checkpoint.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], env: EnvLike | None = None) -> Self:
        """The agent in a file; `env` takes the place of the environment it was saved with."""
        agent = checkpoint.read(path, env)
        if not isinstance(agent, cls):
            kind = type(agent).__name__
            raise ValueError(f"{path} holds a {kind}, not a {cls.__name__}: use steadyrl.load or {kind}.load.")
        return agent


def _signature(settings: type[AgentSettings]) -> inspect.Signature:
    """`env`, `seed`, `engine` and every setting, for help() and editors."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("env", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=EnvLike),
        inspect.Parameter("seed", keyword, default=0, annotation=int),
        inspect.Parameter("engine", keyword, default="auto", annotation=str),
    ]
    fields = settings.__dataclass_fields__.values()
    return inspect.Signature(
        [*own, *(inspect.Parameter(f.name, keyword, default=f.default, annotation=f.type) for f in fields)]
    )


def _rows_sum_to_one(table: Any) -> NDArray[np.float64]:
    """A table of 32 bits in 64, exactly normalised."""
    p = np.asarray(table, np.float64)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: a seed is a whole number from 0 to {2**32 - 1}.")
    return int(seed)


def _checked_engine(engine: str, env: gym.Env[Any, Any] | None) -> str:
    if engine not in ("auto", *ENGINES):
        raise ValueError(unknown("engine", engine, ["auto", *ENGINES]))
    compilable = env is not None and finite_face(env) is not None
    if engine == "compiled" and env is not None and not compilable:
        raise ValueError(f"engine='compiled': {env} is no finite process known in full. Use engine='gymnasium'.")
    if engine == "auto":
        return "compiled" if compilable else "gymnasium"
    return engine


def _table_size(space: gym.Space[Any], kind: str) -> int:
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    raise ValueError(f"{kind} space {space} is not supported: agents learn tables, so it must be Discrete, from 0.")
