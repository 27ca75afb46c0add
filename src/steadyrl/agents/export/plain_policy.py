"""A trained policy as plain arrays: from an observation to its most likely action, without classes of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from numpy.typing import NDArray

from steadyrl.agents.networks import (
    MLP,
    ActionRange,
    CategoricalNetwork,
    DeterministicNetwork,
    EpsilonGreedy,
    MultiCategoricalNetwork,
    NormalNetwork,
)
from steadyrl.envs.images import is_image
from steadyrl.envs.spaces import parts_of, shown_space
from steadyrl.rollouts.acting import Actor, state_size
from steadyrl.rollouts.normalization import CLIP, EPSILON

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

STATES_AT_ONCE = 1000
"""How many states a network is asked about in one call."""


class Input(NamedTuple):
    """The observation, or a part of it: numbers as they are, or choices in one-hot code."""

    name: str
    """The keys that lead to it in Dict and Tuple observations, with slashes between them; "" for all of it."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    one_hot: NDArray[np.int64] | None = None
    """[2, features]: for each feature, the number of a choice and the value of it that the feature stands for."""
    divisor: float = 1.0
    """255 for pixels."""


class Choice(NamedTuple):
    """Actions are numbers of largest outputs, each of its part of the outputs, counted from `first`."""

    numbers: tuple[int, ...]
    """How many outputs there are for each choice."""
    first: NDArray[Any]
    """[choices], in the type of actions."""
    shape: tuple[int, ...]
    """Of an action; () for a single choice."""


class Scaled(NamedTuple):
    """The action is middle + half_range * output, clipped to the bounds; where `squash`, of tanh of the output."""

    squash: bool
    middle: NDArray[Any]
    half_range: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PlainNetwork:
    """Inputs as numbers, normalized if there are moments; dense layers; and the action from their outputs."""

    inputs: tuple[Input, ...]
    moments: tuple[NDArray[np.float32], NDArray[np.float32]] | None
    """Mean and standard deviation of each input; what they give is clipped to `clip`."""
    layers: tuple[dict[str, NDArray[np.float32]], ...]
    """`weight` [in, out] and `bias` [out] of each layer; `scale` and `shift` [out] where outputs are normalized."""
    activation: str
    """After each layer but the last."""
    head: Choice | Scaled
    clip: float = CLIP


@dataclass(frozen=True)
class PlainTable:
    """Discrete observations: the action in each state."""

    actions: NDArray[Any]
    """[S, ...]."""
    first_state: int


def plain_policy(agent: Agent) -> PlainNetwork | PlainTable:
    """What `agent` does with deterministic=True; an error if it has to be told a lambda first."""
    actor = agent.actor()
    if state_size(actor.policy):
        raise _unsupported(agent, cast(Any, actor.policy).mlp)
    if isinstance(agent.observation_space, Discrete):
        return _table(agent, agent.observation_space)
    mlp, layers, head = _network(agent, actor)
    moments = actor.moments
    return PlainNetwork(
        inputs=tuple(_inputs(agent.observation_space)),
        # As `RunningMoments.normalize` computes it.
        moments=None if moments is None else (moments.mean, np.sqrt(moments.variance + np.float32(EPSILON))),
        layers=tuple(layers),
        activation=mlp.activation,
        head=head,
    )


def _table(agent: Agent, space: Discrete) -> PlainTable:
    first, states = int(space.start), np.arange(space.start, space.start + space.n)
    parts = [
        agent.predict(states[k : k + STATES_AT_ONCE], deterministic=True)[0]
        for k in range(0, len(states), STATES_AT_ONCE)
    ]
    return PlainTable(np.concatenate(parts), first)


def _network(agent: Agent, actor: Actor) -> tuple[MLP, Any, Choice | Scaled]:
    """The policy's network, its layers, and what becomes of its outputs."""
    policy, parameters = actor.policy, actor.parameters
    head: Choice | Scaled
    if isinstance(policy, CategoricalNetwork):
        layers, head = parameters, Choice((policy.mlp.outputs,), np.array([policy.first]), ())
    elif isinstance(policy, EpsilonGreedy):
        layers, head = parameters.layers, Choice((policy.mlp.outputs,), np.array([policy.first]), ())
    elif isinstance(policy, MultiCategoricalNetwork):
        heads = policy.heads
        layers, head = parameters, Choice(heads.numbers, np.array(heads.first, heads.dtype), heads.shape)
    elif isinstance(policy, NormalNetwork):
        layers, head = parameters["mean"], _scaled(policy.range, squash=policy.squashed)
    elif isinstance(policy, DeterministicNetwork):
        layers, head = parameters.layers, _scaled(policy.range, squash=True)
    else:
        raise _unsupported(agent, policy)
    mlp: Any = policy.mlp
    if type(mlp) is not MLP:
        raise _unsupported(agent, mlp)
    return mlp, layers, head


def _unsupported(agent: Agent, part: Any) -> ValueError:
    return ValueError(
        f"{agent.name}: a {type(part).__name__} cannot be exported, only tables and networks of dense layers. "
        "Use agent.save."
    )


def _scaled(actions: ActionRange, squash: bool) -> Scaled:
    """As `ActionRange.to_space` computes it; actions without bounds are in the space's units already."""
    low, high = (np.asarray(bound).astype(actions.dtype) for bound in (actions.low, actions.high))
    middle, half_range = np.zeros_like(low), np.ones_like(low)
    if actions.bounded:
        wide = np.asarray(actions.low), np.asarray(actions.high)
        middle, half_range = ((x / 2).astype(actions.dtype) for x in (wide[0] + wide[1], wide[1] - wide[0]))
    return Scaled(squash, middle, half_range, low, high, actions.shape)


def _inputs(space: gym.Space[Any], name: str = "") -> Iterator[Input]:
    """The parts of an observation, in the order of the network's inputs."""
    if isinstance(space, Dict | Tuple):
        for key, part in parts_of(space):
            yield from _inputs(part, f"{name}/{key}".lstrip("/"))
    elif isinstance(space, Discrete):
        yield Input(name, (), np.dtype(np.int64), _one_hot([int(space.n)], [int(space.start)]))
    elif isinstance(space, MultiDiscrete):
        codes = _one_hot(space.nvec.ravel().tolist(), space.start.ravel().tolist())
        yield Input(name, space.shape, np.dtype(space.dtype), codes)
    elif isinstance(space, Box | MultiBinary):
        yield Input(name, space.shape, np.dtype(space.dtype), divisor=255.0 if is_image(space) else 1.0)
    else:
        raise ValueError(f"observation space {shown_space(space)} cannot be exported. Use agent.save.")


def _one_hot(numbers: list[int], first: list[int]) -> NDArray[np.int64]:
    """See `Input`."""
    values = [np.arange(start, start + n) for n, start in zip(numbers, first, strict=True)]
    return np.stack([np.repeat(np.arange(len(numbers)), numbers), np.concatenate(values)])
