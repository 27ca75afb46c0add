"""Risk-averse reinforcement learning: policies whose return is high and steady.

    import steadyrl
    agent = steadyrl.MeanGini("steadyrl/GuardedMaze-v0", risk_aversion=1.4, seed=0)
    agent.learn(total_episodes=50_000)
    print(steadyrl.evaluate(agent, "steadyrl/GuardedMaze-v0", episodes=200))

Names are loaded when they are first used, because JAX and Gymnasium take a second to import. The environments are
known to Gymnasium from `import steadyrl` on.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from steadyrl._registration import register_with_gymnasium

if TYPE_CHECKING:
    from steadyrl import exact as exact
    from steadyrl import risk as risk
    from steadyrl.agents import DQN as DQN
    from steadyrl.agents import MVO as MVO
    from steadyrl.agents import MVP as MVP
    from steadyrl.agents import MVPI as MVPI
    from steadyrl.agents import PPO as PPO
    from steadyrl.agents import TD3 as TD3
    from steadyrl.agents import MeanGini as MeanGini
    from steadyrl.agents import MeanRisk as MeanRisk
    from steadyrl.agents import QLearning as QLearning
    from steadyrl.agents import Reinforce as Reinforce
    from steadyrl.agents import Tamar as Tamar
    from steadyrl.checkpoint import read as load
    from steadyrl.comparison import Comparison as Comparison
    from steadyrl.comparison import compare as compare
    from steadyrl.evaluation import evaluate as evaluate
    from steadyrl.risk_report import Estimate as Estimate
    from steadyrl.risk_report import RiskReport as RiskReport
    from steadyrl.training import learn_together as learn_together

__version__ = "0.1.0"

_HOMES = {
    "DQN": "steadyrl.agents",
    "MVO": "steadyrl.agents",
    "MVP": "steadyrl.agents",
    "MVPI": "steadyrl.agents",
    "MeanGini": "steadyrl.agents",
    "MeanRisk": "steadyrl.agents",
    "QLearning": "steadyrl.agents",
    "PPO": "steadyrl.agents",
    "Reinforce": "steadyrl.agents",
    "Tamar": "steadyrl.agents",
    "TD3": "steadyrl.agents",
    "Comparison": "steadyrl.comparison",
    "Estimate": "steadyrl.risk_report",
    "RiskReport": "steadyrl.risk_report",
    "compare": "steadyrl.comparison",
    "evaluate": "steadyrl.evaluation",
    "learn_together": "steadyrl.training",
}
_MODULES = ("exact", "risk")

__all__ = [*_HOMES, *_MODULES, "load"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"steadyrl.{name}")
    if name == "load":
        return importlib.import_module("steadyrl.checkpoint").read
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'steadyrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


register_with_gymnasium()
