"""CVaR: the mean of the worst returns, maximized by return capping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import gymnasium as gym

from steadyrl.agents.networks import quantiles_for
from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import ClippedSettings
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.agents.settings import PolicyGradientSettings, by_network, with_fitting_mean
from steadyrl.agents.trajectory_credit import TrajectoryCredit
from steadyrl.agents.vpg import ReuseSettings
from steadyrl.base.settings import Rule, Settings, override, setting
from steadyrl.risk import LawMeasure, Measure, measure_by_name
from steadyrl.training.algorithm import Algorithm

if TYPE_CHECKING:
    from steadyrl.agents.signatures import CVaRKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class TailSettings(Settings):
    """Which tail, and how its gradient is estimated."""

    alpha: float = setting(0.1, "The share of the worst returns whose mean is maximized; 1 is all.", above=0, most=1)
    estimator: str = setting(
        "capping",
        "How the gradient is estimated: by return 'capping', from what each step changed in the capped return to be "
        "expected, or 'plain', from the worst episodes alone, all of their steps alike.",
        choices=("capping", "plain"),
    )
    risk_discount: float = setting(
        1.0, "Discount factor of the return; with 1 it is the return that evaluations report.", above=0, most=1
    )
    gae_lambda: float = setting(
        0.95,
        "How far ahead credit looks before it trusts the critic; with estimator='capping'.",
        least=0,
        most=1,
    )
    risk_critic_learning_rate: float = setting(
        by_network(table=0.02, mlp=1e-3), "Step size of the critic; with estimator='capping'.", above=0
    )
    returns_remembered: int = setting(
        Rule(lambda s, env: s.episodes_per_update, "as many as a batch has"),
        "Returns of the latest episodes before a batch from which, besides its own, the cap is estimated.",
        least=0,
    )


def _mean_setting(default: str) -> Any:
    return setting(
        default,
        "How the mean of the capped return is maximized: 'vpg', the vanilla policy gradient, or 'ppo', proximal policy "
        "optimization; by default 'vpg' for a table and 'ppo' for a network.",
        choices=("vpg", "ppo"),
    )


_EPISODES = Rule(lambda s, env: 50 if env.finite else 32, "32; 50 in a known finite MDP, where they are cheap")
"""A tenth of 8 episodes, PPO's default, is less than one."""


@dataclass(frozen=True)
class CVaRSettings(TailSettings, ReuseSettings):
    """Settings of CVaR with the vanilla policy gradient."""

    mean: str = _mean_setting("vpg")
    episodes_per_update: int = override(PolicyGradientSettings, "episodes_per_update", _EPISODES)


@dataclass(frozen=True)
class CVaRPPOSettings(TailSettings, ClippedSettings):
    """Settings of CVaR with PPO."""

    mean: str = _mean_setting("ppo")
    episodes_per_update: int = override(PolicyGradientSettings, "episodes_per_update", _EPISODES)


class CVaR(PolicyGradientAgent):
    """Maximizes CVaR, the mean of the worst share alpha of the returns.

    With q the alpha-quantile of the return (value at risk), grad CVaR = grad E[min(R, q)] / alpha for q held fixed. So
    CVaR is maximized as the mean of returns capped at q (Mead et al. 2025): with C_t the return after step t, the
    reward of a step is min(C_t, q) - min(C_{t-1}, q). All episodes count, and each step with what it changed: an
    episode that reaches the cap shows how. The cap follows the returns, and is that of the other episodes for each.

    A critic (`risk_critic`) expects the capped return from the return so far and the distribution of what is still to
    come; there is no value function and no mean part. estimator='plain' is the likelihood-ratio gradient (Tamar et al.
    2015): the steps of an episode weigh (R - q) / alpha if R < q, and nothing otherwise; PPO then centers the weights.
    """

    name = "cvar"
    Settings = CVaRSettings
    settings_by_choice = {"vpg": CVaRSettings, "ppo": CVaRPPOSettings}  # noqa: RUF012
    settings: CVaRSettings | CVaRPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[CVaRKwargs]
        ) -> None: ...

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """With PPO for a network and the vanilla policy gradient for a table, if neither is given."""
        return with_fitting_mean(given, observation_space, action_space)

    def build(self) -> Algorithm:
        """See `Agent`."""
        s, (policy, _) = self.settings, self.networks()
        measure = self._checked_measure()
        assert isinstance(measure, LawMeasure)
        credit: RiskCritic | TrajectoryCredit
        if s.estimator == "plain":
            credit = TrajectoryCredit(measure, s.risk_discount, s.returns_remembered)
        else:
            credit = RiskCritic(
                quantiles_for(self.observation_space, s.network),
                measure,
                s.risk_discount,
                # Besides GAE's own factor, gamma shortens how far ahead credit looks.
                s.gamma * s.gae_lambda,
                s.risk_critic_learning_rate,
                s.returns_remembered,
            )
        algorithm: Algorithm = s.make_update(policy, None, None, 1.0, critic=credit)
        return algorithm

    def risk_measure(self) -> Measure | None:
        """Minus CVaR."""
        return measure_by_name(f"cvar:{self.settings.alpha}")
