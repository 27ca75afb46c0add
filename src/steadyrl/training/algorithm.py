"""What engines ask of a method: a policy to act with, and an update for each batch of episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from jax import Array

from steadyrl.rollouts.acting import NumpyPolicy
from steadyrl.training.dial import Dial
from steadyrl.training.replay_buffer import ReplayBuffer, TransitionLayout

BatchKind = Literal["batch", "transitions", "episodes", "replay", "online"]
"""What is learned from: `Batch`, `Transitions` or `EpisodeBatch` of the episodes just collected; a `ReplayBatch`; or
single steps, see `Online`."""

Metrics = dict[str, Array]
"""Name -> a number that describes an update, such as its loss."""


class Learner(NamedTuple):
    """Everything that training changes."""

    theta: Any
    """The parameters of the policy, or of the action values that it follows."""
    theta_optimiser: Any
    phi: Any
    """The parameters of the value function, for methods that have one."""
    phi_optimiser: Any
    risk: Any
    """The running estimates of the risk measure."""
    seen: Any = ()
    """The running moments of the observations, if they are normalized; updated by the engine."""
    key: Any = ()
    """The random key of updates that draw random numbers."""
    targets: Any = ()
    """Target networks."""
    updates: Any = ()
    """The number of updates so far, for methods that do not do the same in each."""


class Algorithm(Protocol):
    """A method without its environment: a pytree whose leaves are the numbers of its settings.

    The rest of it, such as the sizes of networks, is what an update is compiled for.
    """

    @property
    def settings(self) -> Any:
        """The agent's settings; engines read `gamma`, `max_episode_steps` and `n`, the episodes in a round."""
        ...

    @property
    def batch_kind(self) -> BatchKind:
        """What `update` takes. The compiled engine does not provide `EpisodeBatch`."""
        ...

    @property
    def compilable(self) -> bool:
        """Whether it can be trained inside a compiled program, with the environment: then it is `Tabular`."""
        ...

    def init(self, key: Array) -> Learner:
        """An untrained learner."""
        ...

    def numpy_policy(self, learner: Learner, exploring_at: int | None = None) -> tuple[NumpyPolicy, Any]:
        """The learned policy and its parameters in NumPy; or as it explores after so many steps."""
        ...

    def update(self, learner: Learner, batch: Any) -> tuple[Learner, Metrics]:
        """The learner after one batch, and metrics; of updates from episodes, also how many `updates` there were."""
        ...


class Online(Algorithm, Protocol):
    """An algorithm that learns a table in NumPy, from each step right after it."""

    def exploring_policy(self, table: Any, timesteps: int) -> tuple[NumpyPolicy, Any]:
        """How it acts with the table after so many steps: the policy and its parameters."""
        ...

    def learn_step(
        self,
        table: Any,
        state: Any,
        action: Any,
        reward: float,
        next_state: Any,
        terminal: bool,
        next_mask: Any = None,
    ) -> float:
        """Change the table in place, and return the error of its prediction.

        `next_mask` [A] says which actions are allowed in the next state; None for all.
        """
        ...


class Tabular(Algorithm, Protocol):
    """An algorithm whose policies are tables."""

    def exploring_table(self, learner: Learner) -> Array:
        """[S, A]: the policy that collects episodes."""
        ...

    def learned_table(self, learner: Learner) -> Array:
        """[S, A]: the learned policy, without exploration."""
        ...


class Dialled(Algorithm, Protocol):
    """An algorithm whose policy takes a level as one more input; its `update` takes batches with `levels`."""

    @property
    def dial(self) -> Dial | None:
        """At which level each episode of a round is played; None if there are none."""
        ...

    def exploring_tables(self, learner: Learner, levels: Array) -> Array:
        """[G, S, A]: the policy that collects episodes at each of the levels [G], if it is a table."""
        ...


class OffPolicy(Algorithm, Protocol):
    """An algorithm that learns from a replay buffer: its `update` takes a `ReplayBatch`."""

    @property
    def layout(self) -> TransitionLayout:
        """How the replay buffer stores a transition."""
        ...

    def before_updates(self, learner: Learner, replay_buffer: ReplayBuffer) -> Learner:
        """What is learned from the latest steps, before each round of updates."""
        ...

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """What is learned from an episode as a whole, once it is over."""
        ...


def acts_in_jax(algorithm: Algorithm) -> bool:
    """Whether it can be trained inside one program with a JAX environment: then it has a `policy`, a `JaxPolicy`."""
    in_jax = hasattr(getattr(algorithm, "policy", None), "act_jax")
    return in_jax and algorithm.batch_kind in ("batch", "episodes")


class Trainee(Protocol):
    """What the training loop trains; an agent is one."""

    @property
    def name(self) -> str:
        """What the command line and checkpoints call it."""
        ...

    seed: int
    engine: str
    """Where its episodes come from."""
    workers: int
    """How many processes play its episodes; 0 if this one does. Results do not depend on it."""
    settings: Any
    algorithm: Algorithm
    learner: Learner
    policy_only: bool
    """Whether its learner consists of a policy and the shapes of the rest: then it acts, but cannot learn."""
    replay_buffer: Any
    source: Any
    env: Any
    observation_space: Any
    action_space: Any
    iterations: int
    episodes: int
    timesteps: int
    history: list[dict[str, Any]]
    config_entries: Mapping[str, str]
    """What a run's config says about this agent besides its settings; see `warm_start`."""

    @property
    def env_name(self) -> str:
        """The id of the environment, if it has one."""
        ...
