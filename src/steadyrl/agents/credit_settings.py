"""Settings of how the risk part of a policy gradient is credited to the steps of an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.agents.settings import by_network
from steadyrl.base.settings import Rule, Settings, setting
from steadyrl.risk import LawMeasure

_VPG_GAE_LAMBDA = 0.95
"""The vanilla policy gradient has no `gae_lambda` of its own."""


@dataclass(frozen=True)
class CreditSettings(Settings):
    """What the risk part credits, and what of the return it measures."""

    credit: str = setting(
        "step",
        "What the risk part credits: each 'step' with what it changed in the risk to be expected, as a critic sees it, "
        "or all steps of a 'trajectory' alike, as in the paper.",
        choices=("step", "trajectory"),
    )
    risk_discount: float = setting(
        Rule(lambda s, env: 1.0 if s.credit == "step" else s.gamma, "1 with credit='step', else gamma"),
        "Discount factor of the return whose risk is penalized; with 1 it is the return that evaluations report.",
        above=0,
        most=1,
    )
    risk_gae_lambda: float = setting(
        Rule(lambda s, env: getattr(s, "gae_lambda", _VPG_GAE_LAMBDA), f"gae_lambda, or {_VPG_GAE_LAMBDA} without PPO"),
        "How far risk credit looks ahead before it trusts its critic; with credit='step'.",
        least=0,
        most=1,
    )
    risk_critic_learning_rate: float = setting(
        by_network(table=0.02, mlp=1e-3), "Step size of the risk critic; with credit='step'.", above=0
    )
    returns_remembered: int = setting(
        Rule(lambda s, env: s.episodes_per_update, "as many as a batch has"),
        "Returns of the latest episodes before a batch that it is compared with, besides its own; with credit='step'. "
        "More of them are less noisy, and biased while the policy improves.",
        least=0,
    )
    risk_warmup: int = setting(
        0,
        "Episodes over which lambda rises from 0 to risk_aversion; with credit='step'. Above 1, lambda can keep a "
        "policy from learning its task at all if it is there from the start.",
        least=0,
    )

    def make_critic(self, network: Any, measure: LawMeasure) -> RiskCritic:
        """What gives credit step by step; `network` is what learns quantiles."""
        s: Any = self
        # Besides GAE's own factor, gamma shortens how far ahead credit looks, as it does for the mean.
        decay = s.gamma * self.risk_gae_lambda
        return RiskCritic(
            network,
            measure,
            self.risk_discount,
            decay,
            self.risk_critic_learning_rate,
            self.returns_remembered,
            self.risk_warmup,
        )
