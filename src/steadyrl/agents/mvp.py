"""MVP: mean-variance by a dual variable in place of the squared mean (Xie et al. 2018)."""

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
    from steadyrl.agents.signatures import MVPKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class DualSettings(Settings):
    """The risk part of MVP. Defaults are the paper's for the Guarded Maze."""

    risk_aversion: float = setting(0.1, "lambda: how much a unit of variance counts against the mean.", above=0)
    dual_learning_rate: float = setting(
        Rule(lambda s, env: s.policy_learning_rate, "the policy's"), "Step size of the dual variable y.", above=0
    )
    initial_dual: float = setting(
        0.0, "Where y starts; it ends at E[G0] + 1 / (2 lambda), or with PPO for the mean at E[G0]."
    )


@dataclass(frozen=True)
class MVPSettings(DualSettings, EpisodicSettings):
    """Settings of MVP with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MVPPPOSettings(DualSettings, EpisodicPPOSettings):
    """Settings of MVP with PPO."""

    risk_aversion: float = override(DualSettings, "risk_aversion", 0.2)
    mean: str = mean_setting("ppo")


class MVP(PolicyGradientAgent):
    """Maximizes E[G0] - risk_aversion * V[G0] through its dual, one update an episode.

    With the vanilla policy gradient the dual's weights hold the mean, and the step is 1 / risk_aversion times as long;
    with PPO they hold the variance alone.
    """

    name = "mvp"
    Settings = MVPSettings
    settings_by_choice = {"vpg": MVPSettings, "ppo": MVPPPOSettings}  # noqa: RUF012
    settings: MVPSettings | MVPPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MVPKwargs]
        ) -> None: ...

    def risk_measure(self) -> Measure | None:
        """The dual objective."""
        s = self.settings
        return risk.mvp(s.risk_aversion, s.dual_learning_rate, s.initial_dual, with_mean=s.mean == "vpg")
