"""What people call agents and settings: the names of figures, the page and its tables."""

from __future__ import annotations

AGENT_TITLES = {
    "reinforce": "REINFORCE",
    "ppo": "PPO",
    "mg": "MG",
    "mvo": "MVO",
    "tamar": "Tamar",
    "mvp": "MVP",
    "q_learning": "Q-learning",
    "dqn": "DQN",
    "td3": "TD3",
    "mvpi": "MVPI",
    "mean_risk": "Mean-risk",
    "cvar": "CVaR",
}
"""Agent -> its name in figures."""
_SETTING_TITLES = {"risk_aversion": "lambda"}


def agent_title(agent: str) -> str:
    """The name of an agent in figures; that of an unknown one is its own."""
    return AGENT_TITLES.get(agent, agent)


def setting_title(name: str) -> str:
    """The name of a setting in the names of methods."""
    return _SETTING_TITLES.get(name, name)
