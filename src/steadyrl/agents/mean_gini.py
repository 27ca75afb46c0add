"""MG: the mean-Gini-deviation policy gradient, the paper's method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import gymnasium as gym

from steadyrl.agents.constant_actions import warn_if_a_constant_action_is_better
from steadyrl.agents.credit_settings import CreditSettings, by_lambda
from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings, RiskRatioSettings
from steadyrl.agents.settings import EPISODES_PER_UPDATE, EnvKind, fitting_mean_setting, with_fitting_mean
from steadyrl.agents.vpg import VPGSettings
from steadyrl.base.settings import Rule, override, setting
from steadyrl.risk import MEASURES, Measure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MeanGiniKwargs
    from steadyrl.envs.source import AnyEnv, Source

ESTIMATORS = {"unbiased": "gini", "paper": "gini_paper"}


@dataclass(frozen=True)
class GiniSettings(CreditSettings):
    """The risk part of MG."""

    risk_aversion: float | tuple[float, float] = setting(
        0.5,
        "lambda: how much a unit of Gini deviation counts against the mean. Up to 1, a policy that is better in every "
        "respect never counts as worse; above 1 it may. Or a range (low, high): one policy for all lambdas in it, see "
        "`agent.at`.",
        least=0,
    )
    estimator: str = setting(
        "unbiased",
        "Weights of the Gini gradient: 'unbiased' (leave one out), or 'paper' (eta of Eq. 16: biased, mostly noisier).",
        choices=tuple(ESTIMATORS),
    )
    credit: str = override(
        CreditSettings,
        "credit",
        Rule(lambda s, env: "trajectory" if s.estimator == "paper" else "step", "step, unless estimator='paper'"),
    )

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        if resolved.estimator == "paper" and resolved.credit == "step":
            raise ValueError("credit='step': the paper's estimator is for trajectories. Leave out one of the two.")
        return resolved


@dataclass(frozen=True)
class MeanGiniSettings(GiniSettings, VPGSettings):
    """Settings of MG with the vanilla policy gradient."""

    mean: str = fitting_mean_setting("vpg")
    episodes_per_update: int = override(VPGSettings, "episodes_per_update", by_lambda(EPISODES_PER_UPDATE))


@dataclass(frozen=True)
class MeanGiniPPOSettings(GiniSettings, RiskRatioSettings, PPOSettings):
    """Settings of MG with PPO."""

    mean: str = fitting_mean_setting("ppo")
    # Episodes are compared with each other, and the returns of 8 say little about their law.
    episodes_per_update: int = override(PPOSettings, "episodes_per_update", by_lambda(16))


class MeanGini(PolicyGradientAgent):
    """Maximizes E[R] - risk_aversion * D[R], where D is the Gini deviation (Eq. 9, Algorithms 1 and 2).

    By default R is the undiscounted return of an episode, and each step is credited with what it changed
    (`risk_critic`). With gamma=1 that is exact; gamma < 1 shortens how far ahead credit looks, and there is no function
    that is ascended (docs/equations.md, "What is optimised"). With credit='trajectory' it is the paper's method: R is
    G0, the discounted return, and all steps of an episode are credited alike.

    Algorithm 1, line by line:

    - sample n trajectories, their returns R and rewards to go g: the engine's round and `training.batch`;
    - for m = 1 to M; ratios rho, select D, stop below beta n: `VPGUpdate.update`, `VPGUpdate.select`;
    - sort by return, eta_i: `risk.gini_weights`, or `gini_weights_unbiased` for the default estimator;
    - mean_grad, gini_grad and their sum, update of theta: `VPGUpdate.mean_weights`, `risk_weights` and `step`;
    - update of the value function: `VPGUpdate.fit_values`.

    Algorithm 2 (`mean="ppo"`; to the letter with `risk_ratios="trajectory"` and `estimator="paper"`, deviation 47):

    - advantages from the current values: `PPOUpdate.advantages`; for m = 1 to M: `whole_passes`;
    - rho clipped at zeta, eta_i: `PPOUpdate.risk_weights`; mean_grad and gini_grad: `PPOUpdate.policy_loss`;
    - update of the value function: `PPOUpdate.value_loss`.
    """

    name = "mg"
    Settings = MeanGiniSettings
    settings_by_choice = {"vpg": MeanGiniSettings, "ppo": MeanGiniPPOSettings}  # noqa: RUF012
    settings: MeanGiniSettings | MeanGiniPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MeanGiniKwargs]
        ) -> None: ...

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """With the mean part that fits, if none is given."""
        return with_fitting_mean(given, observation_space, action_space)

    def risk_measure(self) -> Measure | None:
        """The Gini deviation, by the chosen estimator."""
        return MEASURES[ESTIMATORS[self.settings.estimator]]

    def check_trained(self) -> None:
        """See `Agent`."""
        warn_if_a_constant_action_is_better(self)
