"""The methods, one page each."""

from steadyrl.agents.agent import Agent
from steadyrl.agents.dqn import DQN
from steadyrl.agents.mean_gini import MeanGini
from steadyrl.agents.mean_risk import MeanRisk
from steadyrl.agents.mvo import MVO
from steadyrl.agents.mvp import MVP
from steadyrl.agents.mvpi import MVPI
from steadyrl.agents.ppo import PPO
from steadyrl.agents.q_learning import QLearning
from steadyrl.agents.reinforce import Reinforce
from steadyrl.agents.tamar import Tamar
from steadyrl.agents.td3 import TD3
from steadyrl.naming import choose, plain

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
        DQN,
        TD3,
        MeanRisk,
    )
}
"""The agents by the name that the command line and checkpoints use."""


def agent_class(name: str) -> type[Agent]:
    """The agent that its name or the name of its class stands for, in whatever capitals."""
    classes = {plain(kind.__name__): name for name, kind in AGENTS.items()}
    return choose("agent", classes.get(plain(name), name), AGENTS)


__all__ = [
    "AGENTS",
    "DQN",
    "MVO",
    "MVP",
    "MVPI",
    "PPO",
    "TD3",
    "Agent",
    "MeanGini",
    "MeanRisk",
    "QLearning",
    "Reinforce",
    "Tamar",
]
