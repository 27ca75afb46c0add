"""MVO: the mean-variance policy gradient, with double sampling."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.agents.agent import Agent
from steadyrl.agents.vpg import VPGSettings
from steadyrl.risk import MEASURES, RiskMeasure
from steadyrl.settings import setting


@dataclass(frozen=True)
class MVOSettings(VPGSettings):
    """Settings of MVO."""

    mean: str = setting("vpg", "How the mean is maximised: 'vpg', the vanilla policy gradient.", choices=("vpg",))
    risk_aversion: float = setting(1.0, "lambda: how much a unit of variance counts against the mean.", least=0)


class MVO(Agent):
    """Maximises E[G0] - risk_aversion * V[G0]; half of each batch estimates E[G0], the other half its gradient."""

    name = "mvo"
    Settings = MVOSettings
    settings: MVOSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The variance, by double sampling."""
        return MEASURES["variance"]
