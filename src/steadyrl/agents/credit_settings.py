"""Settings of how the risk part of a policy gradient is credited to the steps of an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.agents.settings import by_network
from steadyrl.base.settings import Rule, Settings, setting
from steadyrl.risk import LawMeasure
from steadyrl.training.dial import Dial, level_of

_VPG_GAE_LAMBDA = 0.95
"""The vanilla policy gradient has no `gae_lambda` of its own."""


MIN_PER_LAMBDA = 8
"""Episodes of a batch that are played with the same lambda: they are compared with each other."""


def _remembered(s: Any, env: Any) -> int:
    return 0 if isinstance(s.risk_aversion, tuple) else s.episodes_per_update


def by_lambda(episodes: Any) -> Rule:
    """The default of `episodes_per_update`: `episodes`, a number or a rule; half as many for each lambda of a range."""
    rule = episodes if isinstance(episodes, Rule) else Rule(lambda s, env: episodes, str(episodes))

    def value(s: Any, env: Any) -> int:
        n: int = rule.value(s, env)
        return s.lambdas_per_update * max(n // 2, MIN_PER_LAMBDA) if isinstance(s.risk_aversion, tuple) else n

    return Rule(value, rule.text)  # The help of lambdas_per_update has the rest.


@dataclass(frozen=True)
class CreditSettings(Settings):
    """What the risk part credits, and what of the return it measures."""

    gamma: float = setting(
        0.99,
        "Discount factor of what is still to come, in the mean part and, unless risk_gamma is given, in risk credit: "
        "both look about 1 / (1 - gamma) steps ahead. With 1 the objective is ascended exactly; below 1 approximately.",
        above=0,
        most=1,
    )
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
    risk_gamma: float = setting(
        Rule(lambda s, env: min(s.gamma / s.risk_discount, 1.0), "gamma / risk_discount, at most 1"),
        "How far ahead risk credit looks, as gamma says it of the mean: what a step changes k steps later counts "
        "risk_gamma^k; with credit='step'. With 1, to the end of the episode.",
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
        Rule(_remembered, "as many as a batch has; 0 for a range of lambdas"),
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

    lambdas_per_update: int = setting(
        4,
        "How many lambdas each batch of episodes is played with; only where risk_aversion is a range. By default "
        "each has half as many episodes as a batch for one lambda, at least 8.",
        least=3,
    )

    @property
    def levels(self) -> tuple[float, float] | None:
        """The ends of a range of lambdas as `training.dial` counts them; None if there is one lambda."""
        ends = getattr(self, "risk_aversion", 0.0)
        return (level_of(ends[0]), level_of(ends[1])) if isinstance(ends, tuple) else None

    def resolve(self, context: Any) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        if resolved.levels is not None:
            resolved._check_range()
        return resolved

    def _check_range(self) -> None:
        s: Any = self
        ranged = f"risk_aversion={s.risk_aversion}: a range"
        if s.credit != "step":
            raise ValueError(f"{ranged} needs credit='step'. Set that, or a single lambda.")
        if s.returns_remembered:
            reason = "has other lambdas in each batch, so returns of earlier ones do not compare"
            raise ValueError(f"{ranged} {reason}. Leave out returns_remembered={s.returns_remembered}.")
        n, groups = s.episodes_per_update, s.lambdas_per_update
        each = max(n // groups, MIN_PER_LAMBDA)
        if n != each * groups:
            raise ValueError(
                f"episodes_per_update={n}: each of {groups} lambdas (lambdas_per_update) has as many episodes, "
                f"at least {MIN_PER_LAMBDA}. Set episodes_per_update={each * groups}."
            )

    def make_dial(self) -> Dial:
        """Which lambda each episode is played with, where risk_aversion is a range."""
        s: Any = self
        low, high = s.risk_aversion
        return Dial(low, high, self.lambdas_per_update)

    def make_critic(self, network: Any, measure: LawMeasure) -> RiskCritic:
        """What gives credit step by step; `network` is what learns quantiles."""
        decay = self.risk_gamma * self.risk_gae_lambda
        return RiskCritic(
            network,
            measure,
            self.risk_discount,
            decay,
            self.risk_critic_learning_rate,
            self.returns_remembered,
            self.risk_warmup,
            self.lambdas_per_update if self.levels is not None else 1,
            self.risk_gamma,
        )
