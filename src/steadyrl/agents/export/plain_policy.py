"""A trained policy as plain arrays: from an observation to its most likely action, without classes of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from numpy.typing import NDArray

from steadyrl.agents.networks import (
    GRU,
    MLP,
    ActionRange,
    CategoricalNetwork,
    DeterministicNetwork,
    EpsilonGreedy,
    EpsilonGreedyTable,
    GreedyTable,
    MultiCategoricalNetwork,
    NormalNetwork,
    ProbabilityTable,
    SoftmaxTable,
)
from steadyrl.agents.networks.conv import NATURE, ConvNetwork
from steadyrl.envs.images import Image, is_image
from steadyrl.envs.spaces import parts_of, shown_space
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.normalization import CLIP, EPSILON

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

Layer = dict[str, NDArray[np.float32]]


class Input(NamedTuple):
    """The observation, or a part of it: numbers as they are, or choices in one-hot code."""

    path: tuple[Any, ...]
    """The keys that lead to it in Dict and Tuple observations; () for all of it."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    one_hot: NDArray[np.int64] | None = None
    """[2, features]: for each feature, the number of a choice and the value of it that the feature stands for."""
    divisor: float = 1.0
    """255 for pixels."""

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return math.prod(self.shape)

    @property
    def features(self) -> int:
        """How many inputs of the network they become."""
        return self.size if self.one_hot is None else self.one_hot.shape[1]


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


class Convolutions(NamedTuple):
    """What is made of one image among the inputs, by convolutions without padding, each followed by max(x, 0)."""

    image: Image
    layers: tuple[Layer, ...]
    """`weight` [side, side, channels, filters] and `bias` [filters] of each."""
    strides: tuple[int, ...]


@dataclass(frozen=True)
class PlainNetwork:
    """Inputs as numbers, normalized if there are moments; then layers; and the action from their outputs."""

    inputs: tuple[Input, ...]
    moments: tuple[NDArray[np.float32], NDArray[np.float32]] | None
    """Mean and standard deviation of each input; what they give is clipped to `clip`."""
    convolutions: tuple[Convolutions, ...]
    """The dense layers see their outputs, [height, width, filters] in this order, and then the other inputs."""
    layers: tuple[Layer, ...]
    """`weight` [in, out] and `bias` [out] of each layer; `scale` and `shift` [out] where outputs are normalized."""
    activation: str
    """After each layer but the last."""
    recurrent: tuple[Layer, Layer] | None
    """The recurrent layer of a GRU, whose gates the layers above lead to, and the last layer; see `networks.gru`."""
    head: Choice | Scaled
    clip: float = CLIP


@dataclass(frozen=True)
class PlainTable:
    """Discrete observations: a row of outputs for each state, and the action from them."""

    outputs: NDArray[np.float32]
    """[S, outputs]."""
    first_state: int
    head: Choice


def plain_policy(agent: Agent) -> PlainNetwork | PlainTable:
    """What `agent` does with deterministic=True; an error if it has to be told a lambda first."""
    actor = agent.actor()
    if getattr(actor.policy, "takes_states", False):
        return _table(agent, actor)
    network, layers, head = _network(agent, actor)
    convolutions: tuple[Convolutions, ...] = ()
    recurrent = None
    if isinstance(network, ConvNetwork):
        convolutions, layers = _convolutions(network, layers)
    if isinstance(network, GRU):
        *layers, gates, last = layers
        recurrent = gates, last
    moments = actor.moments
    return PlainNetwork(
        inputs=tuple(_inputs(agent.observation_space)),
        # As `RunningMoments.normalize` computes it.
        moments=None if moments is None else (moments.mean, np.sqrt(moments.variance + np.float32(EPSILON))),
        convolutions=convolutions,
        layers=tuple(layers),
        activation=network.activation if isinstance(network, MLP) else network.dense.activation,
        recurrent=recurrent,
        head=head,
    )


def _table(agent: Agent, actor: Actor) -> PlainTable:
    policy, parameters = actor.policy, actor.parameters
    if isinstance(policy, GreedyTable | EpsilonGreedyTable):
        outputs = parameters.values
    elif isinstance(policy, SoftmaxTable | ProbabilityTable):
        outputs = parameters
    else:
        raise _unsupported(agent, policy)
    first = int(cast(Discrete, agent.observation_space).start)
    head = Choice((outputs.shape[-1],), np.array([0]), ())
    return PlainTable(np.asarray(outputs, np.float32), first, head)


def _network(agent: Agent, actor: Actor) -> tuple[MLP | ConvNetwork | GRU, Any, Choice | Scaled]:
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
    network: Any = policy.mlp
    if not isinstance(network, MLP | ConvNetwork | GRU):
        raise _unsupported(agent, network)
    return network, layers, head


def _convolutions(network: ConvNetwork, layers: Any) -> tuple[tuple[Convolutions, ...], Any]:
    """Those of each image, and the dense layers after them."""
    count, strides = len(NATURE), tuple(stride for _, _, stride in NATURE)
    starts = range(0, count * len(network.images), count)
    images = zip(network.images, starts, strict=True)
    found = tuple(Convolutions(image, tuple(layers[k : k + count]), strides) for image, k in images)
    return found, layers[count * len(found) :]


def _unsupported(agent: Agent, part: Any) -> ValueError:
    return ValueError(
        f"{agent.name}: a {type(part).__name__} cannot be exported, only tables and networks whose layers are ours. "
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


def _inputs(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> Iterator[Input]:
    """The parts of an observation, in the order of the network's inputs."""
    if isinstance(space, Dict | Tuple):
        for key, part in parts_of(space):
            yield from _inputs(part, (*path, key))
    elif isinstance(space, Discrete):
        yield Input(path, (), np.dtype(np.int64), _one_hot([int(space.n)], [int(space.start)]))
    elif isinstance(space, MultiDiscrete):
        codes = _one_hot(space.nvec.ravel().tolist(), space.start.ravel().tolist())
        yield Input(path, space.shape, np.dtype(space.dtype), codes)
    elif isinstance(space, Box | MultiBinary):
        yield Input(path, space.shape, np.dtype(space.dtype), divisor=255.0 if is_image(space) else 1.0)
    else:
        raise ValueError(f"observation space {shown_space(space)} cannot be exported. Use agent.save.")


def _one_hot(numbers: list[int], first: list[int]) -> NDArray[np.int64]:
    """See `Input`."""
    values = [np.arange(start, start + n) for n, start in zip(numbers, first, strict=True)]
    return np.stack([np.repeat(np.arange(len(numbers)), numbers), np.concatenate(values)])
