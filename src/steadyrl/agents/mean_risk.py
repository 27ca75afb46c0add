"""Any registered measure of risk, penalized by Algorithm 1 or 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import gymnasium as gym

from steadyrl.agents.credit_settings import CreditSettings, by_lambda
from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings, RiskRatioSettings
from steadyrl.agents.settings import EPISODES_PER_UPDATE, EnvKind, fitting_mean_setting, with_fitting_mean
from steadyrl.agents.vpg import VPGSettings
from steadyrl.base.names import split_number, unknown
from steadyrl.base.settings import Rule, override, setting
from steadyrl.risk import MEASURES, Measure, ParametricMeasure

if TYPE_CHECKING:
    from steadyrl.agents.signatures import MeanRiskKwargs
    from steadyrl.envs.source import AnyEnv, Source


def _number(parameter: str, name: str) -> float | None:
    """That of the measure by that name; None if it has no such number."""
    measure = MEASURES.get(name)
    return measure.number if isinstance(measure, ParametricMeasure) and measure.parameter == parameter else None


@dataclass(frozen=True)
class MeasureSettings(CreditSettings):
    """Which measure, and how much of it."""

    measure: str = setting("gini", "What is penalized: a name in steadyrl.risk.MEASURES.")
    alpha: float | None = setting(
        Rule(lambda s, env: _number("alpha", s.measure), "0.1, or 0.25 for inter_quantile_range"),
        "Level of the measures that have one: the share of the worst returns in cvar and cvar_deviation, of the best "
        "and the worst in inter_es_range, and the level of the lower quantile in inter_quantile_range.",
        above=0,
        most=1,
    )
    beta: float | None = setting(
        Rule(lambda s, env: _number("beta", s.measure), "1"),
        "Rate of risk aversion of entropic_risk, in units of 1 / return: about 1 / s for the risk of losing s.",
        above=0,
    )
    risk_aversion: float | tuple[float, float] = setting(
        0.5,
        "lambda: how much a unit of the measure counts against the mean. Or a range (low, high): one policy for all "
        "lambdas in it, see `agent.at`.",
        least=0,
    )

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        for parameter in ("alpha", "beta"):
            number, name = getattr(resolved, parameter), resolved.measure
            if number is not None and name in MEASURES and _number(parameter, name) is None:
                others = ", ".join(other for other in MEASURES if _number(parameter, other) is not None)
                raise ValueError(
                    f"{parameter}={number:g}: {name} has no {parameter}. Leave it out, or choose a measure that has "
                    f"one: {others}."
                )
        return resolved


@dataclass(frozen=True)
class MeanRiskSettings(MeasureSettings, VPGSettings):
    """Settings of MeanRisk with the vanilla policy gradient."""

    mean: str = fitting_mean_setting("vpg")
    episodes_per_update: int = override(VPGSettings, "episodes_per_update", by_lambda(EPISODES_PER_UPDATE))


@dataclass(frozen=True)
class MeanRiskPPOSettings(MeasureSettings, RiskRatioSettings, PPOSettings):
    """Settings of MeanRisk with PPO."""

    mean: str = fitting_mean_setting("ppo")
    # Episodes are compared with each other, and the returns of 8 say little about their law.
    episodes_per_update: int = override(PPOSettings, "episodes_per_update", by_lambda(16))


class MeanRisk(PolicyGradientAgent):
    """Maximizes E[R] - risk_aversion * measure of R, for any measure in `steadyrl.risk.MEASURES`.

    By default R is the undiscounted return of an episode: see `MeanGini`.
    """

    name = "mean_risk"
    Settings = MeanRiskSettings
    settings_by_choice = {"vpg": MeanRiskSettings, "ppo": MeanRiskPPOSettings}  # noqa: RUF012
    settings: MeanRiskSettings | MeanRiskPPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[MeanRiskKwargs]
        ) -> None: ...

    @classmethod
    def chosen(
        cls, given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
    ) -> Mapping[str, Any]:
        """With the mean part that fits, if none is given."""
        return with_fitting_mean(given, observation_space, action_space)

    def risk_measure(self) -> Measure | None:
        """The measure by that name."""
        name = self.settings.measure
        if name not in MEASURES:
            plain, number = split_number(name)
            parameter = next((each for each in ("alpha", "beta") if _number(each, plain) is not None), None)
            if number is not None and parameter is not None:
                raise ValueError(f"measure={name}: write measure={plain!r}, {parameter}={number:g}.")
            raise ValueError(unknown("measure", name, MEASURES))
        measure = MEASURES[name]
        if not isinstance(measure, ParametricMeasure):
            return measure
        number = getattr(self.settings, measure.parameter)
        return measure if number is None else measure.at(number)
