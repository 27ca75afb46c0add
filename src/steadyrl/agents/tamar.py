"""Tamar: mean and variance estimated on a faster time scale, a penalty above a threshold (Tamar et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from steadyrl import risk
from steadyrl.agents.episodic import EpisodicSettings
from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import EpisodicPPOSettings
from steadyrl.agents.settings import mean_setting
from steadyrl.base.settings import Rule, Settings, override, setting
from steadyrl.risk import Measure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import TamarKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class PenaltySettings(Settings):
    """The risk part of Tamar. Defaults are the paper's for the Guarded Maze."""

    risk_aversion: float = setting(0.1, "lambda: how much the penalty counts against the mean.", least=0)
    threshold: float = setting(50.0, "b: variance up to here is not penalised.", least=0)
    moments_learning_rate: float = setting(
        Rule(lambda s, env: 100 * s.policy_learning_rate, "100 times the policy's"),
        "Step size of the running mean J and variance V.",
        above=0,
    )
    initial_mean: float = setting(0.0, "Where J starts.")
    initial_variance: float = setting(0.0, "Where V starts.", least=0)


@dataclass(frozen=True)
class TamarSettings(PenaltySettings, EpisodicSettings):
    """Settings of Tamar with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class TamarPPOSettings(PenaltySettings, EpisodicPPOSettings):
    """Settings of Tamar with PPO."""

    risk_aversion: float = override(PenaltySettings, "risk_aversion", 0.2)
    mean: str = mean_setting("ppo")


class Tamar(PolicyGradientAgent):
    """Maximizes E[G0] - risk_aversion * max(0, V[G0] - threshold)^2, one update for each episode."""

    name = "tamar"
    Settings = TamarSettings
    settings_by_choice = {"vpg": TamarSettings, "ppo": TamarPPOSettings}  # noqa: RUF012
    settings: TamarSettings | TamarPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[TamarKwargs]
        ) -> None: ...

    def risk_measure(self) -> Measure | None:
        """The penalty, with running estimates of mean and variance."""
        s = self.settings
        return risk.tamar(s.threshold, s.moments_learning_rate, s.initial_mean, s.initial_variance)
