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

import steadyrl.envs  # noqa: F401  (registers the environments with Gymnasium)

if TYPE_CHECKING:
    from steadyrl import callbacks as callbacks
    from steadyrl import exact as exact
    from steadyrl import risk as risk
    from steadyrl.agents import DQN as DQN
    from steadyrl.agents import MVO as MVO
    from steadyrl.agents import MVP as MVP
    from steadyrl.agents import MVPI as MVPI
    from steadyrl.agents import PPO as PPO
    from steadyrl.agents import TD3 as TD3
    from steadyrl.agents import CVaR as CVaR
    from steadyrl.agents import MeanGini as MeanGini
    from steadyrl.agents import MeanRisk as MeanRisk
    from steadyrl.agents import QLearning as QLearning
    from steadyrl.agents import Reinforce as Reinforce
    from steadyrl.agents import Tamar as Tamar
    from steadyrl.agents import load as load
    from steadyrl.agents.networks.description import NetworkDescription as NetworkDescription
    from steadyrl.agents.sb3.from_sb3 import from_sb3 as from_sb3
    from steadyrl.envs.jax_gymnasium import from_jax as from_jax
    from steadyrl.evaluation.compare import Comparison as Comparison
    from steadyrl.evaluation.compare import compare as compare
    from steadyrl.evaluation.compare_methods import MethodComparison as MethodComparison
    from steadyrl.evaluation.evaluate import evaluate as evaluate
    from steadyrl.evaluation.film.film import film as film
    from steadyrl.evaluation.film.scenes import Film as Film
    from steadyrl.evaluation.frontier import Frontier as Frontier
    from steadyrl.evaluation.risk_report import Estimate as Estimate
    from steadyrl.evaluation.risk_report import RiskReport as RiskReport
    from steadyrl.runs.calibration import Calibration as Calibration
    from steadyrl.runs.calibration import calibrate as calibrate
    from steadyrl.runs.frontier import frontier as frontier
    from steadyrl.runs.tuning import tune as tune
    from steadyrl.runs.tuning_results import Tuning as Tuning
    from steadyrl.training.loop import learn_together as learn_together

__version__ = "0.2.0"

_AGENTS = (
    "DQN",
    "MVO",
    "MVP",
    "MVPI",
    "PPO",
    "TD3",
    "CVaR",
    "MeanGini",
    "MeanRisk",
    "QLearning",
    "Reinforce",
    "Tamar",
    "load",
)
_HOMES = {
    **dict.fromkeys(_AGENTS, "steadyrl.agents"),
    "Calibration": "steadyrl.runs.calibration",
    "Comparison": "steadyrl.evaluation.compare",
    "Estimate": "steadyrl.evaluation.risk_report",
    "Film": "steadyrl.evaluation.film.scenes",
    "Frontier": "steadyrl.evaluation.frontier",
    "MethodComparison": "steadyrl.evaluation.compare_methods",
    "NetworkDescription": "steadyrl.agents.networks.description",
    "RiskReport": "steadyrl.evaluation.risk_report",
    "Tuning": "steadyrl.runs.tuning_results",
    "calibrate": "steadyrl.runs.calibration",
    "compare": "steadyrl.evaluation.compare",
    "evaluate": "steadyrl.evaluation.evaluate",
    "film": "steadyrl.evaluation.film.film",
    "from_jax": "steadyrl.envs.jax_gymnasium",
    "from_sb3": "steadyrl.agents.sb3.from_sb3",
    "frontier": "steadyrl.runs.frontier",
    "learn_together": "steadyrl.training.loop",
    "tune": "steadyrl.runs.tuning",
}
"""Name -> the module that it is in."""
_MODULES = ("callbacks", "exact", "risk")

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"steadyrl.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'steadyrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
