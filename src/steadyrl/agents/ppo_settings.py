"""Settings of PPO, alone and with a risk part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from steadyrl.agents.networks import Policy, Value
from steadyrl.agents.ppo_update import PPOUpdate
from steadyrl.agents.settings import EnvKind, PolicyGradientSettings, bootstrap_setting, by_network, hidden_setting
from steadyrl.base.settings import Rule, Settings, override, setting
from steadyrl.risk import Measure


def _minibatch_size(s: Any, env: Any) -> int:
    if s.network == "gru":
        return max(1, int(s.episodes_per_update) // 4)
    return 0 if s.network == "table" else 64


def _schedule(s: Any, env: Any) -> str:
    # With constant step sizes a policy that has learned its task keeps moving: CartPole was lost again on 3 of 3 seeds.
    return "constant" if s.network == "table" or s.annealing_episodes else "linear"


@dataclass(frozen=True)
class ClippedSettings(PolicyGradientSettings):
    """How PPO moves a policy. For networks defaults are those in common use, rather than the paper's."""

    episodes_per_update: int = override(PolicyGradientSettings, "episodes_per_update", 8)
    hidden: tuple[int, ...] = hidden_setting(256, 256)
    policy_learning_rate: float = override(
        PolicyGradientSettings, "policy_learning_rate", by_network(table=0.01, mlp=3e-4)
    )
    learning_rate_schedule: str = override(
        PolicyGradientSettings,
        "learning_rate_schedule",
        Rule(_schedule, "linear for a network, constant for a table"),
    )
    annealing_episodes: int = setting(
        0,
        "Episodes in the second half of which the step sizes of policy and values fall linearly to a tenth; with 0 "
        "they do not. As many as the training has, it ends with policies that differ little from each other. It "
        "replaces learning_rate_schedule, which is constant then.",
        least=0,
    )
    normalise_observations: bool = override(
        PolicyGradientSettings,
        "normalise_observations",
        Rule(
            lambda s, env: s.network in ("mlp", "gru", "custom") and env.real_observations,
            "for a network, if they are real numbers",
        ),
    )
    inner_updates: int = setting(
        by_network(table=5, mlp=10), "M: passes over each batch of episodes.", least=1, aliases=("n_epochs",)
    )
    minibatch_size: int = setting(
        Rule(_minibatch_size, "0 for a table, 64 for a network, a quarter of n for a GRU"),
        "Steps for each update of policy and values, drawn from the batch without replacement, or whole episodes with "
        "network='gru'; with 0, the whole batch for the policy and each trajectory in turn for the values, as in "
        "Algorithm 2.",
        least=0,
        aliases=("batch_size",),
    )
    gae_lambda: float = setting(0.95, "How far advantages look ahead before they trust the values.", least=0, most=1)
    clip_range: float = setting(0.2, "epsilon: ratios of steps are clipped to 1 - epsilon and 1 + epsilon.", above=0)
    target_kl: float = setting(
        by_network(table=0.0, mlp=0.05),
        "A batch is dropped after a pass in which the KL divergence from the old policy is above this on average; with "
        "0 it never is. For minibatches.",
        least=0,
    )
    entropy_coefficient: float = setting(
        Rule(lambda s, env: 0.0 if env.real_actions else 0.01, "0.01 for Discrete actions, 0 for real ones"),
        "Weight of the policy's entropy.",
        least=0,
        aliases=("ent_coef",),
    )
    max_gradient_norm: float = setting(
        0.5,
        "Longer gradients are scaled down to this norm, the policy's and the value function's each on its own.",
        above=0,
        aliases=("max_grad_norm",),
    )
    normalise_advantages: bool = setting(
        True,
        "Whether advantages are centered on their mean, and they and the risk weights divided by their standard "
        "deviation.",
        aliases=("normalize_advantage", "normalize_advantages"),
    )

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        if resolved.annealing_episodes and resolved.learning_rate_schedule != "constant":
            raise ValueError(
                f"learning_rate_schedule={resolved.learning_rate_schedule!r}: step sizes fall by annealing_episodes="
                f"{resolved.annealing_episodes} already. Leave out one of the two."
            )
        if resolved.network == "gru" and resolved.minibatch_size > resolved.n:
            raise ValueError(
                f"minibatch_size={resolved.minibatch_size}: with network='gru' it counts whole episodes, of which a "
                f"batch has {resolved.n} (episodes_per_update). Choose at most {resolved.n}."
            )
        return resolved

    def make_update(
        self, policy: Policy, value: Value | None, measure: Measure | None, risk_aversion: float, **credit: Any
    ) -> PPOUpdate:
        """See `PolicyGradientSettings`."""
        return PPOUpdate(policy, measure, risk_aversion, self, value, **credit)


@dataclass(frozen=True)
class PPOSettings(ClippedSettings):
    """Settings of PPO."""

    value_learning_rate: float = setting(
        Rule(lambda s, env: s.policy_learning_rate, "the policy's"),
        "Step size of the value function.",
        above=0,
    )
    shared_trunk: bool = setting(
        False,
        "Whether policy and values share all layers but the last; the error of the values, times value_coefficient, "
        "then counts in the steps of the policy. For networks.",
    )
    value_targets: str = setting(
        "td_lambda",
        "What values are fitted to: 'td_lambda', the values plus the advantages, which are less noisy, or "
        "'monte_carlo', the rewards to go, as in Algorithm 2.",
        choices=("td_lambda", "monte_carlo"),
    )
    normalise_values: bool = setting(
        by_network(table=False, mlp=True),
        "Whether a network learns values in standard deviations from the running mean of what they are fitted to, so "
        "that one step size serves rewards of any size.",
        aliases=("normalize_values",),
    )
    value_coefficient: float = setting(0.5, "Weight of the squared error of the values.", above=0, aliases=("vf_coef",))
    bootstrap_on_truncation: bool = bootstrap_setting(True)

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        if resolved.network == "table" and resolved.normalise_values:
            raise ValueError("normalise_values=True: it is for networks, and this is a table. Leave it out.")
        if resolved.network == "table" and resolved.shared_trunk:
            raise ValueError("shared_trunk=True: it is for networks, and this is a table. Leave it out.")
        return resolved


def risk_ratios_setting(default: str) -> Any:
    """The setting `risk_ratios` (deviation 47)."""
    return setting(
        default,
        "How the risk part is corrected while a batch is reused: 'step' by step, inside PPO's clipped objective, or by "
        "the ratio of the whole 'trajectory', as in Algorithm 2; only with credit='trajectory'.",
        choices=("step", "trajectory"),
    )


@dataclass(frozen=True)
class RiskRatioSettings(Settings):
    """Settings of PPO's risk part."""

    risk_ratios: str = risk_ratios_setting("step")
    ratio_bound: float = setting(
        1.0,
        "zeta: larger ratios of whole trajectories count as this; only with risk_ratios='trajectory'.",
        above=0,
    )


@dataclass(frozen=True)
class EpisodicPPOSettings(RiskRatioSettings, PPOSettings):
    """Settings of methods that update after each episode, with PPO for the mean."""

    episodes_per_update: int = override(PPOSettings, "episodes_per_update", 1)
    inner_updates: int = override(PPOSettings, "inner_updates", 1)
    minibatch_size: int = override(PPOSettings, "minibatch_size", 0)
    policy_learning_rate: float = override(PPOSettings, "policy_learning_rate", by_network(table=0.002, mlp=7e-5))
    # Centered on the mean of their own episode, advantages could not say that the episode was a good one.
    normalise_advantages: bool = override(PPOSettings, "normalise_advantages", False)
