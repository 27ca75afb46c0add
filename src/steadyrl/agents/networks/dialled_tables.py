"""Tables for a range of lambdas: one table at each of a few knots, and in between a mixture of the two nearest.

Parameters are linear in the level, log(1 + lambda), from knot to knot. With two knots that is a base table plus level
times a table of slopes. Where they are learned at levels in between, neighbouring knots learn from each other's
episodes.

An observation is (state, level), or `EveryState` for the whole table at each of some levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked
from steadyrl.agents.networks.quantiles import TABLE_QUANTILES
from steadyrl.agents.networks.tables import draw, gumbel, of_rows
from steadyrl.training.batch import EveryState

KNOTS = 4
"""How many tables there are."""


@dataclass(frozen=True)
class Knots:
    """Levels at which there is a table, evenly spaced from `low` to `high`."""

    low: float
    high: float
    number: int = KNOTS

    def shares(self, level: Any) -> Any:
        """[...] to [..., number]: the weight of each table at a level; they add up to 1, and two at most are not 0."""
        place = (level - self.low) / (self.high - self.low) * (self.number - 1)
        return (1 - abs(place[..., None] - np.arange(self.number, dtype=np.float32))).clip(0)

    def mixed(self, tables: Any, observations: Any) -> Any:
        """What tables [number, S, ...] hold for each observation; for `EveryState`, of every state."""
        if isinstance(observations, EveryState):
            return jnp.tensordot(self.shares(jnp.asarray(observations.levels)), tables, axes=1)
        state, level = observations[..., 0].astype(np.int32), observations[..., 1]
        shares = self.shares(level)
        return sum(_times(shares[..., k], tables[k][state]) for k in range(self.number))

    def at(self, tables: Any, level: float) -> Any:
        """The table [S, ...] of one level."""
        return jnp.tensordot(jnp.asarray(self.shares(np.float32(level))), tables, axes=1)


@dataclass(frozen=True)
class DialledSoftmaxTable:
    """pi(a|s) at a level: the softmax of its mixture of tables. Starts as the uniform policy."""

    n_states: int
    n_actions: int
    knots: Knots
    takes_states: ClassVar[bool] = True

    def init(self, key: Array) -> Array:
        """All zeros: every action equally likely at every level."""
        return jnp.zeros((self.knots.number, self.n_states, self.n_actions))

    def log_prob(
        self, parameters: Array, observations: Any, actions: Array | None, masks: Array | None = None
    ) -> Array:
        """Log pi(a|s) for each observation and each of its actions; all actions of `EveryState`."""
        return self.log_prob_and_entropy(parameters, observations, actions, masks)[0]

    def log_prob_and_entropy(
        self, parameters: Array, observations: Any, actions: Array | None, masks: Array | None = None
    ) -> tuple[Array, Array]:
        """Also the entropy of each state's row."""
        if masks is not None:
            assert actions is not None
            return of_rows(self.knots.mixed(parameters, observations), actions, masks)
        table = jax.nn.log_softmax(self.knots.mixed(parameters, observations))
        entropy = -(jnp.exp(table) * table).sum(axis=-1)
        return table if actions is None else jnp.take_along_axis(table, actions, axis=-1), entropy

    def probabilities(self, parameters: Array, levels: Array) -> Array:
        """The whole table at each of some levels [G]: [G, S, A]."""
        return jax.nn.softmax(self.knots.mixed(parameters, EveryState(levels)))

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """See `gumbel`."""
        return gumbel(generator, steps, self.n_actions)

    def jax_noise(self, key: Array) -> Array:
        """See `gumbel`."""
        return jax.random.gumbel(key, (self.n_actions,))

    def act(self, parameters: Any, observations: Any, noise: Any, masks: Any = None) -> Any:
        """An action for each (state, level)."""
        return draw(masked(self.knots.mixed(parameters, observations), masks), noise)

    def act_jax(self, parameters: Array, observations: Array, noise: Array | None) -> Array:
        """An action for each (state, level)."""
        action: Array = draw(self.knots.mixed(parameters, observations), noise)
        return action

    def to_space(self, actions: Any) -> Any:
        """As they are."""
        return actions

    def at_level(self, parameters: Array, level: float) -> Array:
        """The parameters of a `SoftmaxTable` that is this policy at one level."""
        return jnp.asarray(self.knots.at(parameters, level))


@dataclass(frozen=True)
class DialledValueTable:
    """V(s) at a level. Starts at 0."""

    n_states: int
    knots: Knots

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros((self.knots.number, self.n_states))

    def __call__(self, parameters: Array, observations: Any) -> Array:
        """V(s) for each observation; of all states for `EveryState`."""
        return jnp.asarray(self.knots.mixed(parameters, observations))

    def at_level(self, parameters: Array, level: float) -> Array:
        """The parameters of a `ValueTable` that has these values at one level."""
        return jnp.asarray(self.knots.at(parameters, level))


@dataclass(frozen=True)
class DialledQuantileTable:
    """Quantiles given a state and a level. They are the same at all times."""

    n_states: int
    knots: Knots
    knows_time: ClassVar[bool] = False
    passes: ClassVar[int] = 4
    minibatch_size: ClassVar[int | None] = None

    def init(self, key: Array) -> Array:
        """All zeros."""
        return jnp.zeros((self.knots.number, self.n_states, TABLE_QUANTILES))

    def __call__(self, parameters: Array, observations: Any, times: Array) -> Array:
        """[..., 2] to [..., TABLE_QUANTILES]."""
        return jnp.asarray(self.knots.mixed(parameters, observations))

    def at_level(self, parameters: Array, level: float) -> Array:
        """The parameters of a `QuantileTable` that has these quantiles at one level."""
        return jnp.asarray(self.knots.at(parameters, level))


def _times(share: Any, rows: Any) -> Any:
    """[...] times [..., m], or times [...] for a table of single numbers."""
    return share * rows if rows.ndim == share.ndim else share[..., None] * rows
