"""The title and the hue of each agent, the same in figures, films and on the page."""

from __future__ import annotations

from collections.abc import Iterable

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
"""Agent -> its title."""
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
"""Hues on white: those of Okabe and Ito, which stay apart for colour-blind readers."""
DARK = ("#3f94e0", "#f07a2a", "#1fb389", "#d773b3", "#f5d24a", "#a5dcff", "#e8e8e8")
"""The same hues on a dark page."""
_PREFERRED = {"mg": 0, "mvo": 1, "tamar": 2, "mvp": 3, "mean_risk": 4, "cvar": 4, "mvpi": 5}
"""The hue of an agent everywhere, unless another agent has it already. Those that are risk-neutral are grey."""
_NEUTRAL = 6


def agent_title(agent: str) -> str:
    """The title of an agent; that of an unknown one is its own name."""
    return AGENT_TITLES.get(agent, agent)


def hues_of(agents: Iterable[str]) -> dict[str, int]:
    """Agent -> the index of the hue that it prefers, or else of a free one, or if there is none of any."""
    hues: dict[str, int] = {}
    for number, agent in enumerate(sorted(dict.fromkeys(agents), key=lambda agent: agent not in _PREFERRED)):
        free = [hue for hue in range(len(LIGHT)) if hue not in hues.values()]
        preferred = _PREFERRED.get(agent, _NEUTRAL)
        hues[agent] = preferred if preferred in free else free[0] if free else number % len(LIGHT)
    return hues


def agent_colours(agents: Iterable[str]) -> dict[str, str]:
    """Agent -> its colour on white, as #rrggbb."""
    return {agent: LIGHT[hue] for agent, hue in hues_of(agents).items()}
