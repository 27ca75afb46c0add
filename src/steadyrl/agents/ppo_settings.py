"""Settings of PPO, alone and with a risk part."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from steadyrl.agents.settings import PolicyGradientSettings
from steadyrl.settings import setting


@dataclass(frozen=True)
class PPOSettings(PolicyGradientSettings):
    """Settings of PPO. Defaults are the paper's for HalfCheetah and Swimmer, where it prints them."""

    gamma: float = setting(0.99, "Discount factor of the return.", above=0, most=1)
    episodes_per_update: int | None = setting(10, "n: whole episodes collected before each round of updates.", least=1)
    inner_updates: int = setting(5, "M: how often a round goes through its batch of episodes.", least=1)
    minibatch_size: int = setting(
        0,
        "Steps for each update of policy and values, drawn from the batch without replacement; with 0, the whole "
        "batch for the policy and each trajectory in turn for the values, as in Algorithm 2.",
        least=0,
    )
    policy_learning_rate: float | None = setting(
        None, "Step size of the policy; if not given, 3e-4 for a network and 0.01 for a table.", above=0
    )
    value_learning_rate: float | None = setting(
        None, "Step size of the value function; the policy's if not given.", above=0
    )
    gae_lambda: float = setting(0.95, "How far advantages look ahead before they trust the values.", least=0, most=1)
    clip_range: float = setting(0.2, "epsilon: how far the ratio of a step may pay off, from 1 - to 1 + this.", above=0)
    entropy_coefficient: float = setting(0.01, "How much a unit of the policy's entropy is worth.", least=0)
    value_coefficient: float = setting(0.5, "What the squared error of the values is multiplied by.", above=0)
    max_gradient_norm: float = setting(
        0.5, "Longer gradients are shortened to this, the policy's and the value function's each on its own.", above=0
    )
    normalise_advantages: bool = setting(
        True,
        "Whether advantages are counted from their mean, and they and the weights of risk in units of their spread.",
    )
    time_out_ends: bool = setting(
        False, "Whether a time limit counts as an end; if not, the value of the last observation is expected beyond it."
    )
    hidden: tuple[int, ...] = setting((256, 256), "Sizes of the hidden layers of networks.", least=1)

    learning_rates: ClassVar[dict[str, float]] = {"table": 0.01, "mlp": 3e-4}
    optimisers: ClassVar[dict[str, str]] = {"table": "adam", "mlp": "adam"}

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        settings = super().completed(tabular, finite)
        rate = self.value_learning_rate or settings.policy_learning_rate
        return dataclasses.replace(settings, value_learning_rate=rate)


def risk_ratios_setting(default: str) -> Any:
    """The setting `risk_ratios` (deviation 47)."""
    return setting(
        default,
        "How the risk part is kept right while a batch is reused: 'step' by step, as PPO does it for the mean, or by "
        "the ratio of the whole 'trajectory', as in Algorithm 2.",
        choices=("step", "trajectory"),
    )


@dataclass(frozen=True)
class RiskPPOSettings(PPOSettings):
    """Settings of PPO with a risk part."""

    risk_ratios: str = risk_ratios_setting("step")
    ratio_bound: float = setting(
        1.0,
        "zeta: ratios of whole trajectories count as this where they are larger; only with risk_ratios='trajectory'.",
        above=0,
    )


@dataclass(frozen=True)
class EpisodicPPOSettings(RiskPPOSettings):
    """Settings of methods that update after each episode, with PPO for the mean."""

    episodes_per_update: int | None = setting(1, "Whole episodes collected before each update.", least=1)
    inner_updates: int = setting(1, "M: how often a round goes through its episodes.", least=1)
    policy_learning_rate: float | None = setting(
        None, "Step size of the policy; if not given, 7e-5 for a network and 0.002 for a table.", above=0
    )
    # Counted from the mean of their own episode, advantages could not say that the episode was a good one.
    normalise_advantages: bool = setting(
        False,
        "Whether advantages are counted from their mean, and they and the weights of risk in units of their spread.",
    )

    learning_rates: ClassVar[dict[str, float]] = {"table": 0.002, "mlp": 7e-5}
