"""Any registered measure of risk, penalized by Algorithm 1 or 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings, RiskRatioSettings
from steadyrl.agents.settings import mean_setting
from steadyrl.agents.vpg import VPGSettings
from steadyrl.base.names import unknown
from steadyrl.base.settings import Settings, setting
from steadyrl.risk import MEASURES, Measure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MeanRiskKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class MeasureSettings(Settings):
    """Which measure, and how much of it."""

    measure: str = setting("gini", "What is penalized: a name in steadyrl.risk.MEASURES.")
    risk_aversion: float = setting(0.5, "lambda: how much a unit of the measure counts against the mean.", least=0)


@dataclass(frozen=True)
class MeanRiskSettings(MeasureSettings, VPGSettings):
    """Settings of MeanRisk with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MeanRiskPPOSettings(MeasureSettings, RiskRatioSettings, PPOSettings):
    """Settings of MeanRisk with PPO."""

    mean: str = mean_setting("ppo")


class MeanRisk(PolicyGradientAgent):
    """Maximizes E[G0] - risk_aversion * measure of G0, for any measure in `steadyrl.risk.MEASURES`."""

    name = "mean_risk"
    Settings = MeanRiskSettings
    settings_by_choice = {"vpg": MeanRiskSettings, "ppo": MeanRiskPPOSettings}  # noqa: RUF012
    settings: MeanRiskSettings | MeanRiskPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MeanRiskKwargs]
        ) -> None: ...

    def risk_measure(self) -> Measure | None:
        """The measure by that name."""
        name = self.settings.measure
        if name not in MEASURES:
            raise ValueError(unknown("measure", name, MEASURES))
        return MEASURES[name]
