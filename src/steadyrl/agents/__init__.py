"""The methods, one page each, in the order in which commands list them."""

# ruff: isort: off
from steadyrl.agents.reinforce import Reinforce
from steadyrl.agents.ppo import PPO
from steadyrl.agents.mean_gini import MeanGini
from steadyrl.agents.mvo import MVO
from steadyrl.agents.tamar import Tamar
from steadyrl.agents.mvp import MVP
from steadyrl.agents.q_learning import QLearning
from steadyrl.agents.dqn import DQN
from steadyrl.agents.td3 import TD3
from steadyrl.agents.mvpi import MVPI
from steadyrl.agents.mean_risk import MeanRisk
from steadyrl.agents.cvar import CVaR
from steadyrl.agents.agent import Agent
from steadyrl.agents.loading import load
from steadyrl.agents.registry import AGENTS, agent_class

# ruff: isort: on

__all__ = [
    "AGENTS",
    "DQN",
    "MVO",
    "MVP",
    "MVPI",
    "PPO",
    "TD3",
    "Agent",
    "CVaR",
    "MeanGini",
    "MeanRisk",
    "QLearning",
    "Reinforce",
    "Tamar",
    "agent_class",
    "load",
]
