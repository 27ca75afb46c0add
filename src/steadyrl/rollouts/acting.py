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
from steadyrl.rollouts.hidden_states import HiddenStates
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


class RecurrentPolicy(NumpyPolicy, Protocol):
    """A policy whose actions depend on earlier observations of their episode, by a hidden state."""

    @property
    def state_size(self) -> int:
        """How many numbers the hidden state has; at the start of an episode they are 0."""
        ...

    def act_from(
        self, parameters: Any, observations: Any, states: Any, noise: Any, masks: Any = None
    ) -> tuple[Any, Any]:
        """`act` from hidden states [..., state_size]; also the states after it."""
        ...


def state_size(policy: Any) -> int:
    """That of a recurrent policy; 0 for any other."""
    return getattr(policy, "state_size", 0)


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
    states: HiddenStates | None = None
    """The hidden states of a recurrent policy in the episodes of the rows; see `at_start`."""

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

    # OpenBLAS now and then reports an invalid value in a product of finite numbers whose result is right. Inputs and
    # parameters have been checked by now, so the report has no other meaning.
    @np.errstate(invalid="ignore")
    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """[k, ...]: an action for each row of features; the most likely one if `noise` is None."""
        inputs = self.inputs(features)
        if self.states is not None:
            return self._act_from(self.states, inputs, noise, masks)
        given = () if masks is None else (masks,)
        if self.blocks is None:
            return self.policy.act(self.parameters, inputs, noise, *given)
        noise = None if noise is None else self.blocks.split(noise)
        given = tuple(map(self.blocks.split, given))
        return self.blocks.join(self.policy.act(self.parameters, self.blocks.split(inputs), noise, *given))

    def _act_from(self, states: HiddenStates, inputs: Any, noise: Any, masks: Any) -> Any:
        """`act` of a recurrent policy, which changes the states of the rows."""
        policy: Any = self.policy
        given: tuple[Any, ...] = (inputs, states.read(), noise, masks)
        if self.blocks is not None:
            given = tuple(None if x is None else self.blocks.split(x) for x in given)
        actions, after = policy.act_from(self.parameters, *given)
        if self.blocks is not None:
            actions, after = self.blocks.join(actions), self.blocks.join(after)
        states.write(after)
        return actions

    def to_space(self, actions: Any) -> Any:
        """The actions in the form of the environment's action space."""
        return self.policy.to_space(actions)


def at_start(actor: Actor, episodes: int) -> Actor:
    """The actor at the start of so many episodes: if its policy is recurrent, with hidden states of zeros."""
    size = state_size(getattr(actor, "policy", None))
    return dataclasses.replace(actor, states=HiddenStates.zeros(episodes, size)) if size else actor


def of_episodes(actor: Actor, episodes: Any) -> Actor:
    """The actor of some of the episodes; the same one if it has no levels, no blocks and no hidden states."""
    levels, blocks = getattr(actor, "levels", None), getattr(actor, "blocks", None)
    states = getattr(actor, "states", None)
    if levels is None and blocks is None and states is None:
        return actor
    return dataclasses.replace(
        actor,
        levels=None if levels is None else levels[episodes],
        blocks=None if blocks is None else Blocks.of(blocks.places[episodes]),
        states=None if states is None else states.of(episodes),
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
