"""MVO: the mean-variance policy gradient, with double sampling."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.agents.agent import Agent
from steadyrl.agents.ppo_settings import RiskPPOSettings
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

    policy_learning_rate: float | None = setting(7e-5, "Step size of the policy.", above=0)
    mean: str = mean_setting("ppo")


class MVO(Agent):
    """Maximises E[G0] - risk_aversion * V[G0]; half of each batch estimates E[G0], the other half its gradient."""

    name = "mvo"
    Settings = MVOSettings
    settings_by_mean = {"vpg": MVOSettings, "ppo": MVOPPOSettings}  # noqa: RUF012
    settings: MVOSettings | MVOPPOSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The variance, by double sampling."""
        return MEASURES["variance"]
