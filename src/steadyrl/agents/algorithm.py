"""What an engine asks of a method: parameters to start from, and an update for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jax import Array

if TYPE_CHECKING:
    from steadyrl.agents.vpg import Learner, PolicyGradientSettings
    from steadyrl.batch import Batch


class Algorithm(Protocol):
    """A mean part with a risk part in its slot. Frozen and hashable: programs are compiled for it."""

    @property
    def settings(self) -> PolicyGradientSettings:
        """The agent's settings."""
        ...

    def init(self, key: Array) -> Learner:
        """A learner that has seen nothing."""
        ...

    def update(self, learner: Learner, batch: Batch) -> tuple[Learner, Array]:
        """The learner after one batch, and how many updates it made of it."""
        ...
