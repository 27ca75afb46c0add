"""Policies and value functions: the shapes that agents learn."""

from steadyrl.networks.action_range import ActionRange
from steadyrl.networks.categorical import CategoricalNetwork
from steadyrl.networks.choose import networks_for
from steadyrl.networks.deterministic import DeterministicNetwork, Directed
from steadyrl.networks.epsilon_greedy import EpsilonGreedy, Valued
from steadyrl.networks.mlp import MLP, ValueNetwork
from steadyrl.networks.normal import NormalNetwork
from steadyrl.networks.protocols import Acting, Parameters, Policy, Value
from steadyrl.networks.tables import ProbabilityTable, SoftmaxTable, ValueTable

__all__ = [
    "MLP",
    "Acting",
    "ActionRange",
    "CategoricalNetwork",
    "DeterministicNetwork",
    "Directed",
    "EpsilonGreedy",
    "NormalNetwork",
    "Parameters",
    "Policy",
    "ProbabilityTable",
    "SoftmaxTable",
    "Value",
    "ValueNetwork",
    "ValueTable",
    "Valued",
    "networks_for",
]
