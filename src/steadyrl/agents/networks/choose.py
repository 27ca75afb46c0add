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
from steadyrl.agents.networks.mlp import MLP, ValueNetwork
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
    shared: bool = False,
    squash_mean: bool = True,
) -> tuple[Policy, Value]:
    """A table for each state and action, or networks; with a level as one more input, if given.

    `levels` are the lowest and the highest one; see `training.dial`. Where layers are `shared`, values are linear in
    the `features` of the policy.
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
    policy = _policy(
        observation_space, action_space, architecture, initial_log_std, initial_output_scale, more, squash_mean
    )
    of_values = MLP((policy.mlp.width, 1)) if shared else architecture.network(observation_space, 1, more)
    return policy, (NormalisedValue if normalise_values else ValueNetwork)(of_values)


def _policy(
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    architecture: Architecture,
    initial_log_std: float,
    initial_output_scale: float,
    more: int,
    squash_mean: bool,
) -> CategoricalNetwork | MultiCategoricalNetwork | NormalNetwork:
    """The policy for the action space, with so many more inputs than observations have."""
    if isinstance(action_space, Discrete):
        network = architecture.network(observation_space, int(action_space.n), more)
        return CategoricalNetwork(network, int(action_space.start), initial_output_scale)
    if isinstance(action_space, MultiDiscrete | MultiBinary):
        heads = Heads.of(action_space)
        network = architecture.network(observation_space, sum(heads.numbers), more)
        return MultiCategoricalNetwork(network, heads, initial_output_scale)
    assert isinstance(action_space, Box)
    actions = ActionRange.of(action_space)
    network = architecture.network(observation_space, actions.dimensions, more)
    return NormalNetwork(network, actions, initial_log_std, initial_output_scale, squash_mean)


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
    if network in (CUSTOM, "gru"):  # Without memory: see docs/networks.md.
        network = "cnn" if large_images(observation_space) else "mlp"
    return QuantileNetwork(Architecture(network, HIDDEN).network(observation_space, QUANTILES, more))
