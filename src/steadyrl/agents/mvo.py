"""MVO: the mean-variance policy gradient, with double sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings, RiskRatioSettings
from steadyrl.agents.settings import by_network, mean_setting
from steadyrl.agents.vpg import VPGSettings
from steadyrl.base.settings import Settings, override, setting
from steadyrl.risk import MEASURES, Measure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MVOKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class VarianceSettings(Settings):
    """The risk part of MVO."""

    risk_aversion: float = setting(1.0, "lambda: how much a unit of variance counts against the mean.", least=0)


@dataclass(frozen=True)
class MVOSettings(VarianceSettings, VPGSettings):
    """Settings of MVO with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MVOPPOSettings(VarianceSettings, RiskRatioSettings, PPOSettings):
    """Settings of MVO with PPO."""

    policy_learning_rate: float = override(PPOSettings, "policy_learning_rate", by_network(table=0.002, mlp=7e-5))
    risk_aversion: float = override(VarianceSettings, "risk_aversion", 0.03)
    # The weights of the two halves have different signs: added to advantages they would decide which steps are good.
    risk_ratios: str = override(RiskRatioSettings, "risk_ratios", "trajectory")
    mean: str = mean_setting("ppo")


class MVO(PolicyGradientAgent):
    """Maximizes E[G0] - risk_aversion * V[G0]; half of each batch estimates E[G0], the other half its gradient."""

    name = "mvo"
    Settings = MVOSettings
    settings_by_choice = {"vpg": MVOSettings, "ppo": MVOPPOSettings}  # noqa: RUF012
    settings: MVOSettings | MVOPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MVOKwargs]
        ) -> None: ...

    def risk_measure(self) -> Measure | None:
        """The variance, by double sampling."""
        return MEASURES["variance"]
