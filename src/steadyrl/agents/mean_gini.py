"""MG: the mean-Gini-deviation policy gradient, the paper's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from steadyrl.agents.constant_actions import warn_if_a_constant_action_is_better
from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings, RiskRatioSettings
from steadyrl.agents.settings import mean_setting
from steadyrl.agents.vpg import VPGSettings
from steadyrl.base.settings import Settings, setting
from steadyrl.risk import MEASURES, Measure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MeanGiniKwargs
    from steadyrl.envs.source import AnyEnv, Source

ESTIMATORS = {"unbiased": "gini", "paper": "gini_paper"}


@dataclass(frozen=True)
class GiniSettings(Settings):
    """The risk part of MG."""

    risk_aversion: float = setting(
        0.5,
        "lambda: how much a unit of Gini deviation counts against the mean. Up to 1, a policy that is better in every "
        "respect never counts as worse; above 1 it may.",
        least=0,
    )
    estimator: str = setting(
        "unbiased",
        "Weights of the Gini gradient: 'unbiased' (leave one out), or 'paper' (eta of Eq. 16: biased, mostly noisier).",
        choices=tuple(ESTIMATORS),
    )


@dataclass(frozen=True)
class MeanGiniSettings(GiniSettings, VPGSettings):
    """Settings of MG with the vanilla policy gradient."""

    mean: str = mean_setting("vpg")


@dataclass(frozen=True)
class MeanGiniPPOSettings(GiniSettings, RiskRatioSettings, PPOSettings):
    """Settings of MG with PPO."""

    mean: str = mean_setting("ppo")


class MeanGini(PolicyGradientAgent):
    """Maximizes E[G0] - risk_aversion * D[G0], where D is the Gini deviation (Eq. 9, Algorithms 1 and 2).

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

    def risk_measure(self) -> Measure | None:
        """The Gini deviation, by the chosen estimator."""
        return MEASURES[ESTIMATORS[self.settings.estimator]]

    def check_trained(self) -> None:
        """See `Agent`."""
        warn_if_a_constant_action_is_better(self)
