"""What an engine asks of a method: a policy to act with, and an update for each batch of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from jax import Array

from steadyrl.memory import Layout
from steadyrl.networks import Acting

if TYPE_CHECKING:
    from steadyrl.agents.replay import ReplaySettings
    from steadyrl.agents.settings import AgentSettings


Material = Literal["batch", "transitions", "episodes", "replayed"]
"""What an update is given: of the episodes just collected, as `Batch`, `Transitions` or `Episodes`; or `Replayed`."""


class Learner(NamedTuple):
    """All that learning changes."""

    theta: Any
    """What the policy follows from: its own parameters, or action values."""
    theta_optimiser: Any
    phi: Any
    """The value function, for methods that have one."""
    phi_optimiser: Any
    risk: Any
    """The running estimates of the measure of risk."""
    seen: Any = ()
    """The moments of the observations, if they are normalised; the engine's to update."""
    key: Any = ()
    """Where the updates' random numbers come from, for methods whose updates draw any."""
    targets: Any = ()
    """Slower copies of theta and phi, for methods that learn towards them."""
    updates: Any = ()
    """How many updates there were, for methods that do not do the same in each."""


class Algorithm(Protocol):
    """A method without its environment. Frozen and hashable: programs are compiled for it."""

    @property
    def settings(self) -> AgentSettings:
        """The agent's settings."""
        ...

    @property
    def material(self) -> Material:
        """What `update` takes. A compiled engine has no `Episodes`."""
        ...

    @property
    def compilable(self) -> bool:
        """Whether it can learn inside a compiled program, together with the environment: then it is `Tabular`."""
        ...

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        ...

    def in_numpy(self, learner: Learner, exploring_at: int | None = None) -> tuple[Acting, Any]:
        """The policy that was learned, with its parameters in NumPy; or that explores after so many steps."""
        ...

    def update(self, learner: Learner, material: Any) -> tuple[Learner, Array]:
        """The learner after one batch, and how many updates it made of it."""
        ...


class Tabular(Algorithm, Protocol):
    """An algorithm whose policies are tables."""

    def acting(self, learner: Learner) -> Array:
        """[S, A]: the policy that collects episodes."""
        ...

    def learned(self, learner: Learner) -> Array:
        """[S, A]: the policy that was learned; without exploration, where a method explores."""
        ...


class Replaying(Algorithm, Protocol):
    """An algorithm that learns from a memory of transitions: its `update` takes what is `Replayed`."""

    @property
    def settings(self) -> ReplaySettings:
        """The agent's settings."""
        ...

    @property
    def layout(self) -> Layout:
        """How the memory keeps a transition."""
        ...

    def after_episode(self, learner: Learner, discounted_return: Array) -> Learner:
        """What an episode teaches as a whole, once it is over."""
        ...
