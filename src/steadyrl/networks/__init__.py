"""Policies and value functions: the shapes that agents learn."""

from steadyrl.networks.categorical import CategoricalNetwork
from steadyrl.networks.choose import networks_for
from steadyrl.networks.mlp import MLP, ValueNetwork
from steadyrl.networks.normal import NormalNetwork
from steadyrl.networks.protocols import Parameters, Policy, Value
from steadyrl.networks.tables import ProbabilityTable, SoftmaxTable, ValueTable

__all__ = [
    "MLP",
    "CategoricalNetwork",
    "NormalNetwork",
    "Parameters",
    "Policy",
    "ProbabilityTable",
    "SoftmaxTable",
    "Value",
    "ValueNetwork",
    "ValueTable",
    "networks_for",
]
