"""Settings that methods share."""

from __future__ import annotations

from dataclasses import dataclass

from steadyrl.settings import Settings, setting


@dataclass(frozen=True)
class AgentSettings(Settings):
    """What every agent needs."""

    gamma: float = setting(0.999, "Discount factor of the return.", above=0, most=1)
    episodes_per_update: int = setting(50, "n: whole episodes collected before each round of updates.", least=1)


@dataclass(frozen=True)
class PolicyGradientSettings(AgentSettings):
    """What every policy gradient needs."""

    policy_learning_rate: float = setting(1e-4, "Step size of the policy.", above=0)
