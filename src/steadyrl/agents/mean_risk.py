"""Any registered measure of risk, penalised by Algorithm 1 or 2."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.agents.agent import Agent
from steadyrl.agents.ppo_settings import RiskPPOSettings
from steadyrl.agents.settings import mean_setting
from steadyrl.agents.vpg import VPGSettings
from steadyrl.naming import unknown
from steadyrl.risk import MEASURES, RiskMeasure
from steadyrl.settings import Settings, setting


@dataclass(frozen=True)
class MeasureSettings(Settings):
    """Which measure, and how much of it."""

    measure: str = setting("gini", "What is penalised: a name in steadyrl.risk.MEASURES.")
    risk_aversion: float = setting(1.0, "lambda: how much a unit of the measure counts against the mean.", least=0)


@dataclass(frozen=True)
class MeanRiskSettings(MeasureSettings, VPGSettings):
    """Settings of MeanRisk with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MeanRiskPPOSettings(MeasureSettings, RiskPPOSettings):
    """Settings of MeanRisk with PPO."""

    mean: str = mean_setting("ppo")


class MeanRisk(Agent):
    """Maximises E[G0] - risk_aversion * measure of G0, for any measure in `steadyrl.risk.MEASURES`."""

    name = "mean_risk"
    Settings = MeanRiskSettings
    settings_by_choice = {"vpg": MeanRiskSettings, "ppo": MeanRiskPPOSettings}  # noqa: RUF012
    settings: MeanRiskSettings | MeanRiskPPOSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The measure by that name."""
        name = self.settings.measure
        if name not in MEASURES:
            raise ValueError(unknown("measure", name, MEASURES))
        return MEASURES[name]
