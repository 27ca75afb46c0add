"""MG: the mean-Gini-deviation policy gradient, the paper's method."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.agents.agent import Agent
from steadyrl.agents.vpg import VPGSettings
from steadyrl.risk import MEASURES, RiskMeasure
from steadyrl.settings import setting

ESTIMATORS = {"unbiased": "gini", "paper": "gini_paper"}


@dataclass(frozen=True)
class MeanGiniSettings(VPGSettings):
    """Settings of MG."""

    mean: str = setting("vpg", "How the mean is maximised: 'vpg', the vanilla policy gradient.", choices=("vpg",))
    risk_aversion: float = setting(1.2, "lambda: how much a unit of Gini deviation counts against the mean.", least=0)
    estimator: str = setting(
        "unbiased",
        "Weights of the Gini gradient: 'unbiased' (leave one out), or 'paper' (eta of Eq. 16: biased, mostly noisier).",
        choices=tuple(ESTIMATORS),
    )


class MeanGini(Agent):
    """Maximises E[G0] - risk_aversion * D[G0], where D is the Gini deviation (Eq. 9, Algorithm 1).

    Algorithm 1, line by line:

    - sample n trajectories, their returns R and rewards to go g: the engine's round and `batch`;
    - for m = 1 to M: `VPG.update`; ratios rho, select D, stop below beta n: `VPG.select`, `VPG.update`;
    - sort by return, eta_i: `risk.gini_weights`, or `gini_weights_unbiased` for the default estimator;
    - mean_grad, gini_grad and their sum, update of theta: `VPG.ascend`; of the value function: `VPG.sweep`.
    """

    name = "mg"
    Settings = MeanGiniSettings
    settings: MeanGiniSettings

    def risk_measure(self) -> RiskMeasure | None:
        """The Gini deviation, by the chosen estimator."""
        return MEASURES[ESTIMATORS[self.settings.estimator]]
