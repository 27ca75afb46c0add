"""REINFORCE with a baseline: the risk-neutral policy gradient."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.vpg import VPGSettings


@dataclass(frozen=True)
class ReinforceSettings(VPGSettings):
    """Settings of REINFORCE."""


class Reinforce(PolicyGradientAgent):
    """Maximizes E[G0]: Algorithm 1 without its Gini part."""

    name = "reinforce"
    Settings = ReinforceSettings
    settings: ReinforceSettings
