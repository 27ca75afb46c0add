"""The methods, one page each."""

from steadyrl.agents.agent import Agent
from steadyrl.agents.mean_gini import MeanGini
from steadyrl.agents.mean_risk import MeanRisk
from steadyrl.agents.mvo import MVO
from steadyrl.agents.mvp import MVP
from steadyrl.agents.mvpi import MVPI
from steadyrl.agents.ppo import PPO
from steadyrl.agents.q_learning import QLearning
from steadyrl.agents.reinforce import Reinforce
from steadyrl.agents.tamar import Tamar

AGENTS: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (
        Reinforce,
        PPO,
        MeanGini,
        MVO,
        Tamar,
        MVP,
        MVPI,
        QLearning,
        MeanRisk,
    )
}
"""The agents by the name that the command line and checkpoints use."""

__all__ = ["AGENTS", "MVO", "MVP", "MVPI", "PPO", "Agent", "MeanGini", "MeanRisk", "QLearning", "Reinforce", "Tamar"]
