"""A policy evaluated in NumPy, and the random numbers of its actions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steadyrl.base.seeding import Stream, stream_generator
from steadyrl.envs.spaces import features
from steadyrl.rollouts.normalization import RunningMoments

BLOCK = 64
"""Number of steps for which random numbers are drawn at once."""
ROWS = 4
"""In a block of rows that are multiplied together."""


class NumpyPolicy(Protocol):
    """A policy evaluated in NumPy, because calling a compiled program would cost more than the action itself."""

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, ...]: the random numbers of the next `steps` actions of one episode."""
        ...

    def act(self, parameters: Any, observations: Any, noise: Any, masks: Any = None) -> Any:
        """[..., a]: an action for each observation [..., inputs]; the most likely one if `noise` is None.

        With `masks` [..., A], only actions where they are True.
        """
        ...

    def to_space(self, actions: Any) -> Any:
        """The actions in the form of the environment's action space."""
        ...


class Blocks(NamedTuple):
    """Rows that are multiplied in blocks of `ROWS`, so that the rounding of one does not depend on the others.

    The rounding of a matrix product depends on its number of rows, and may depend on the place of a row. Here both
    are fixed: episode i is row i % ROWS of a product of ROWS rows, whichever other episodes are still being played, and
    in whichever process. The rows of other episodes are filled with zeros. This is as fast as one product of all rows.
    """

    places: Any
    """[k]: the number of each row's episode, ascending."""
    rows: Any
    """[k]: where the row is among the rows of all blocks that have one; None if the blocks are full."""
    number: int
    """How many blocks there are."""

    @classmethod
    def of(cls, places: Any) -> Blocks:
        """For episodes with these numbers."""
        used, block = np.unique(places // ROWS, return_inverse=True)
        full = len(places) == ROWS * len(used)
        return cls(places, None if full else block * ROWS + places % ROWS, len(used))

    def split(self, values: Any) -> Any:
        """[k, ...] to [number, ROWS, ...]."""
        if self.rows is not None:
            padded = np.zeros((self.number * ROWS, *values.shape[1:]), values.dtype)
            padded[self.rows] = values
            values = padded
        return values.reshape(self.number, ROWS, *values.shape[1:])

    def join(self, values: Any) -> Any:
        """[number, ROWS, ...] to [k, ...]."""
        flat = values.reshape(self.number * ROWS, *values.shape[2:])
        return flat if self.rows is None else flat[self.rows]


@dataclass(frozen=True)
class Actor:
    """A policy with its parameters, and the preprocessing of its observations."""

    policy: NumpyPolicy
    parameters: Any
    """NumPy arrays."""
    observation_space: gym.Space[Any] | None
    """The space that features are computed from; None for tables, which take the index of a state."""
    moments: RunningMoments | None = None
    """For normalization; None for no normalization."""
    levels: Any = None
    """[k]: one more input of the policy for each row of features; None if it has none. See `training.dial`."""
    blocks: Blocks | None = None
    """Where each row is among the blocks of rows that are multiplied; None to multiply all rows at once."""

    def features(self, observations: Any) -> Any:
        """[k, ...]: the features of k observations of a simulator, before normalization."""
        return observations if self.observation_space is None else features(self.observation_space, observations)

    def normalize(self, features: Any) -> Any:
        """Features as inputs of the networks."""
        return features if self.moments is None else self.moments.normalize(features)

    def inputs(self, features: Any) -> Any:
        """[k, ...]: what the policy sees of features: normalized, and behind them the level of each row."""
        inputs = self.normalize(features)
        return inputs if self.levels is None else with_levels(inputs, self.levels, self.observation_space is None)

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """[k, ...]: an action for each row of features; the most likely one if `noise` is None."""
        inputs = self.inputs(features)
        given = () if masks is None else (masks,)
        if self.blocks is None:
            return self.policy.act(self.parameters, inputs, noise, *given)
        noise = None if noise is None else self.blocks.split(noise)
        given = tuple(map(self.blocks.split, given))
        return self.blocks.join(self.policy.act(self.parameters, self.blocks.split(inputs), noise, *given))

    def to_space(self, actions: Any) -> Any:
        """The actions in the form of the environment's action space."""
        return self.policy.to_space(actions)


def of_episodes(actor: Actor, episodes: Any) -> Actor:
    """The actor of some of the episodes; the same one if it has no levels and no blocks."""
    levels, blocks = getattr(actor, "levels", None), getattr(actor, "blocks", None)
    if levels is None and blocks is None:
        return actor
    return dataclasses.replace(
        actor,
        levels=None if levels is None else levels[episodes],
        blocks=None if blocks is None else Blocks.of(blocks.places[episodes]),
    )


def with_levels(inputs: Any, levels: Any, of_states: bool) -> Any:
    """Inputs [n, ..., d] and the level [n] of each row: [n, ..., d + 1]; or states [n, ...] and levels: [n, ..., 2].

    In NumPy or in JAX, as `levels` are.
    """
    xp = np if isinstance(levels, np.ndarray) else jnp
    inputs = inputs[..., None] if of_states else inputs
    column = xp.broadcast_to(levels.reshape(-1, *[1] * (inputs.ndim - 1)), (*inputs.shape[:-1], 1))
    return xp.concatenate([inputs.astype(np.float32), column.astype(np.float32)], axis=-1)


class ActionNoise:
    """The random numbers of the actions of n episodes, each from a separate stream seeded with the episode's seed."""

    def __init__(self, policy: NumpyPolicy, seeds: Any) -> None:
        self._policy = policy
        self._generators = [stream_generator(int(seed), Stream.ACTIONS) for seed in seeds]

    def at(self, t: int, slots: Any) -> Any:
        """[k, ...]: the random numbers of step t for the episodes `slots`; to be called for t = 0, 1, ... in turn."""
        if t % BLOCK == 0:
            # [BLOCK, n, ...]: one row per step.
            drawn = [self._policy.noise(generator, BLOCK) for generator in self._generators]
            self._block = np.ascontiguousarray(np.stack(drawn, axis=1))
        row = self._block[t % BLOCK]
        return row if len(slots) == len(row) else row[slots]
