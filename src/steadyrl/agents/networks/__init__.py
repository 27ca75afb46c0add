"""Policies and value functions: tables and networks."""

from steadyrl.agents.networks.action_range import ActionRange
from steadyrl.agents.networks.architecture import Architecture
from steadyrl.agents.networks.categorical import CategoricalNetwork
from steadyrl.agents.networks.choose import networks_for, quantiles_for
from steadyrl.agents.networks.deterministic import ActorParams, DeterministicNetwork
from steadyrl.agents.networks.dialled_tables import DialledSoftmaxTable
from steadyrl.agents.networks.epsilon_greedy import EpsilonGreedy, QParams
from steadyrl.agents.networks.epsilon_greedy_table import EpsilonGreedyTable, QTable
from steadyrl.agents.networks.gru import GRU
from steadyrl.agents.networks.mlp import MLP, ValueNetwork
from steadyrl.agents.networks.multi_categorical import MultiCategoricalNetwork
from steadyrl.agents.networks.normal import NormalNetwork
from steadyrl.agents.networks.normalised_value import NormalisedValue
from steadyrl.agents.networks.protocols import Network, Parameters, Policy, Value
from steadyrl.agents.networks.tables import GreedyParams, GreedyTable, ProbabilityTable, SoftmaxTable, ValueTable

__all__ = [
    "GRU",
    "MLP",
    "ActionRange",
    "ActorParams",
    "Architecture",
    "CategoricalNetwork",
    "DeterministicNetwork",
    "DialledSoftmaxTable",
    "EpsilonGreedy",
    "EpsilonGreedyTable",
    "GreedyParams",
    "GreedyTable",
    "MultiCategoricalNetwork",
    "Network",
    "NormalNetwork",
    "NormalisedValue",
    "Parameters",
    "Policy",
    "ProbabilityTable",
    "QParams",
    "QTable",
    "SoftmaxTable",
    "Value",
    "ValueNetwork",
    "ValueTable",
    "networks_for",
    "quantiles_for",
]
