"""REINFORCE with a baseline: the risk-neutral policy gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.vpg import VPGSettings

if TYPE_CHECKING:
    from steadyrl.agents.signatures import ReinforceKwargs
    from steadyrl.envs.source import AnyEnv, Source


@dataclass(frozen=True)
class ReinforceSettings(VPGSettings):
    """Settings of REINFORCE."""


class Reinforce(PolicyGradientAgent):
    """Maximizes E[G0]: Algorithm 1 without its Gini part."""

    name = "reinforce"
    Settings = ReinforceSettings
    settings: ReinforceSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[ReinforceKwargs]
        ) -> None: ...
