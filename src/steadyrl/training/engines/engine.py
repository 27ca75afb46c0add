"""What every engine does: take agents through rounds of collecting and updating.

Round k of an agent depends on its settings, its seed and k, and on nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from steadyrl.training.algorithm import Algorithm, Learner, Trainee

T = TypeVar("T")

EPISODES_PER_RECORD = 50
"""Smaller rounds are recorded together: a record covers one round, or about this many episodes."""


class Rounds(NamedTuple):
    """c rounds of n episodes each."""

    returns: Any
    """[c, n]: undiscounted."""
    discounted_returns: Any
    """[c, n]."""
    lengths: Any
    """[c, n]: in steps."""
    episode_metrics: dict[str, Any]
    """name -> [c, n]: reported by the environment."""
    update_metrics: dict[str, Any]
    """name -> [c]: see `Algorithm.update`."""
    work: dict[str, Any]
    """name -> [c]: seconds and idle steps of collecting and updating; empty where they cannot be separated."""


class Engine(Protocol):
    """Trains a group of agents: several inside one compiled program, else one."""

    max_rounds: int
    """How many rounds one call of `advance` can take."""

    def advance(self, count: int, timesteps: int) -> list[tuple[Learner, Rounds]]:
        """At most `count` more rounds of each agent, fewer once `timesteps` steps are reached.

        The agents themselves do not change. `DivergedError` if parameters diverge.
        """
        ...

    def close(self) -> None:
        """Release the simulator, if there is one."""
        ...


def as_arrays(algorithm: Algorithm) -> Any:
    """The algorithm with its numbers as device arrays, which compiled functions take without a conversion."""
    return jax.tree.map(lambda number: jnp.asarray(number, jnp.float32), algorithm)


def block_until_ready(tree: T) -> T:
    """The arrays, once they are computed, so that the time of an update can be measured."""
    ready: T = jax.block_until_ready(tree)  # type: ignore[no-untyped-call]
    return ready


MAX_FLOAT = float(np.finfo(np.float32).max)
"""The largest reward and return that agents can learn from."""


class DivergedError(FloatingPointError):
    """Parameters became infinite or NaN; `agents` are those that they belong to."""

    def __init__(self, agents: Sequence[Trainee], rounds: Sequence[Rounds] = ()) -> None:
        """`rounds` are the latest of each agent, in which a cause may be found."""
        first, self.agents = agents[0], agents
        rates = [name for name in dataclasses.asdict(first.settings) if name.endswith("learning_rate")]
        remedy = f"Lower {' or '.join(rates)}."
        largest = max((float(np.abs(x.returns).max()) for x in rounds[:1]), default=0.0)
        if not largest <= MAX_FLOAT**0.5:
            remedy = (
                f"Returns were as large as {largest:g}, and squares of such numbers do not fit in 32 bits: "
                "scale the rewards, for example with gymnasium.wrappers.TransformReward."
            )
        super().__init__(
            f"{first.name}: parameters became infinite or NaN after {first.episodes} episodes. "
            f"{remedy} The agent keeps what it had learned until then."
        )


def check_finite(agents: Sequence[Trainee], results: Sequence[tuple[Learner, Rounds]]) -> None:
    """Refuse parameters that diverged; the agents keep those from before."""
    diverged = [
        (agent, rounds)
        for agent, (learner, rounds) in zip(agents, results, strict=True)
        if not all(np.all(np.isfinite(np.asarray(x))) for x in jax.tree.leaves(learner))
    ]
    if diverged:
        raise DivergedError([agent for agent, _ in diverged], [rounds for _, rounds in diverged])
