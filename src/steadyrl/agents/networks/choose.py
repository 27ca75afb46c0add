"""Which policy and value function fit an environment's spaces."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from steadyrl.agents.networks.action_range import ActionRange
from steadyrl.agents.networks.architecture import Architecture
from steadyrl.agents.networks.categorical import CategoricalNetwork
from steadyrl.agents.networks.description import CUSTOM
from steadyrl.agents.networks.dialled_tables import (
    DialledQuantileTable,
    DialledSoftmaxTable,
    DialledValueTable,
    Knots,
)
from steadyrl.agents.networks.mlp import ValueNetwork
from steadyrl.agents.networks.multi_categorical import Heads, MultiCategoricalNetwork
from steadyrl.agents.networks.normal import NormalNetwork
from steadyrl.agents.networks.normalised_value import NormalisedValue
from steadyrl.agents.networks.protocols import Policy, Value
from steadyrl.agents.networks.quantiles import HIDDEN, QUANTILES, QuantileNetwork, QuantileTable
from steadyrl.agents.networks.tables import SoftmaxTable, ValueTable
from steadyrl.envs.images import large_images


def networks_for(
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    architecture: Architecture,
    initial_log_std: float,
    initial_output_scale: float = 1.0,
    normalise_values: bool = False,
    levels: tuple[float, float] | None = None,
) -> tuple[Policy, Value]:
    """A table for each state and action, or networks; with a level as one more input, if given.

    `levels` are the lowest and the highest one; see `training.dial`.
    """
    if architecture.kind == "table":
        assert isinstance(observation_space, Discrete)
        assert isinstance(action_space, Discrete)
        S, A = int(observation_space.n), int(action_space.n)
        if levels is not None:
            knots = Knots(*levels)
            return DialledSoftmaxTable(S, A, knots), DialledValueTable(S, knots)
        return SoftmaxTable(S, A), ValueTable(S)
    more = int(levels is not None)
    value = (NormalisedValue if normalise_values else ValueNetwork)(architecture.network(observation_space, 1, more))
    if isinstance(action_space, Discrete):
        network = architecture.network(observation_space, int(action_space.n), more)
        return CategoricalNetwork(network, int(action_space.start), initial_output_scale), value
    if isinstance(action_space, MultiDiscrete | MultiBinary):
        heads = Heads.of(action_space)
        network = architecture.network(observation_space, sum(heads.numbers), more)
        return MultiCategoricalNetwork(network, heads, initial_output_scale), value
    assert isinstance(action_space, Box)
    actions = ActionRange.of(action_space)
    network = architecture.network(observation_space, actions.dimensions, more)
    return NormalNetwork(network, actions, initial_log_std, initial_output_scale), value


def quantiles_for(
    observation_space: gym.Space[Any], network: str, levels: tuple[float, float] | None = None
) -> QuantileTable | QuantileNetwork | DialledQuantileTable:
    """What learns a distribution for each observation; with a level as one more input, see `networks_for`."""
    if network == "table":
        assert isinstance(observation_space, Discrete)
        S = int(observation_space.n)
        return QuantileTable(S) if levels is None else DialledQuantileTable(S, Knots(*levels))
    # One more for the time.
    more = 1 + (levels is not None)
    if network == CUSTOM:
        network = "cnn" if large_images(observation_space) else "mlp"
    return QuantileNetwork(Architecture(network, HIDDEN).network(observation_space, QUANTILES, more))
