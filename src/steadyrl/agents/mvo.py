"""MVO: the mean-variance policy gradient, with double sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steadyrl.agents.agent import Agent
from steadyrl.agents.ppo_settings import RiskPPOSettings, risk_ratios_setting
from steadyrl.agents.settings import mean_setting
from steadyrl.agents.vpg import VPGSettings
from steadyrl.risk import MEASURES, RiskMeasure
from steadyrl.settings import Settings, setting


@dataclass(frozen=True)
class VarianceSettings(Settings):
    """The risk part of MVO."""

    risk_aversion: float = setting(1.0, "lambda: how much a unit of variance counts against the mean.", least=0)


@dataclass(frozen=True)
class MVOSettings(VarianceSettings, VPGSettings):
    """Settings of MVO with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MVOPPOSettings(VarianceSettings, RiskPPOSettings):
    """Settings of MVO with PPO."""

    policy_learning_rate: float | None = setting(
        None, "Step size of the policy; if not given, 7e-5 for a network and 0.002 for a table.", above=0
    )
    risk_aversion: float = setting(0.03, "lambda: how much a unit of variance counts against the mean.", least=0)
    # The weights of the two halves have different signs: added to advantages they would decide which steps are good.
    risk_ratios: str = risk_ratios_setting("trajectory")
    mean: str = mean_setting("ppo")

    learning_rates: ClassVar[dict[str, float]] = {"table": 0.002, "mlp": 7e-5}


class MVO(Agent):
    """Maximises E[G0] - risk_aversion * V[G0]; half of each batch estimates E[G0], the other half its gradient."""

    name = "mvo"
    Settings = MVOSettings
    settings_by_choice = {"vpg": MVOSettings, "ppo": MVOPPOSettings}  # noqa: RUF012
    settings: MVOSettings | MVOPPOSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The variance, by double sampling."""
        return MEASURES["variance"]
