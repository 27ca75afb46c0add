"""What an engine asks of a method: a policy to act with, and an update for each batch of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from jax import Array

from steadyrl.networks import Policy

if TYPE_CHECKING:
    from steadyrl.agents.settings import AgentSettings


Material = Literal["batch", "transitions", "episodes"]
"""What an update is given of the episodes that were collected: a `Batch`, `Transitions`, or the `Episodes`."""


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

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        ...

    def acting(self, learner: Learner) -> Array:
        """[S, A]: the policy that collects episodes, if it is a table."""
        ...

    def learned(self, learner: Learner) -> Array:
        """[S, A]: the policy that was learned, if it is a table; without exploration, where a method explores."""
        ...

    def in_numpy(self, learner: Learner, exploring: bool) -> tuple[Policy, Any]:
        """Either of them, table or network, as a policy and its parameters in NumPy."""
        ...

    def update(self, learner: Learner, material: Any) -> tuple[Learner, Array]:
        """The learner after one batch, and how many updates it made of it."""
        ...
