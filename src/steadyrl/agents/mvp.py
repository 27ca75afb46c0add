"""MVP: mean-variance by a dual variable in place of the squared mean (Xie et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl import risk
from steadyrl.agents.agent import Agent
from steadyrl.agents.episodic import Episodic, EpisodicSettings
from steadyrl.networks import Policy, Value
from steadyrl.risk import RiskMeasure
from steadyrl.settings import setting


@dataclass(frozen=True)
class MVPSettings(EpisodicSettings):
    """Settings of MVP. Defaults are the paper's for the Guarded Maze."""

    mean: str = setting("vpg", "How the mean is maximised: 'vpg', the vanilla policy gradient.", choices=("vpg",))
    risk_aversion: float = setting(0.1, "lambda: how much a unit of variance counts against the mean.", above=0)
    dual_learning_rate: float | None = setting(
        None, "Step size of the dual variable y; the policy's if not given.", above=0
    )
    initial_dual: float = setting(0.0, "Where y starts; it ends at E[G0] + 1 / (2 lambda).")


class MVP(Agent):
    """Maximises E[G0] - risk_aversion * V[G0] through its dual, scaled by 1 / risk_aversion; one update an episode."""

    name = "mvp"
    Settings = MVPSettings
    settings: MVPSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The dual objective, which holds the mean."""
        s = self.settings
        rate = s.dual_learning_rate or s.policy_learning_rate
        assert rate is not None, "settings are completed before they are used"
        return risk.mvp(s.risk_aversion, rate, s.initial_dual)

    def mean_part(self, policy: Policy, value: Value, measure: RiskMeasure | None) -> Episodic:
        """The weights hold the mean already."""
        return Episodic(policy, measure, self.settings.risk_aversion, self.settings)
