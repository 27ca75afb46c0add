"""PPO: proximal policy optimization (Schulman et al. 2017), the risk-neutral baseline of Algorithm 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings

if TYPE_CHECKING:
    from steadyrl.agents.signatures import PPOKwargs
    from steadyrl.envs.source import AnyEnv, Source


class PPO(PolicyGradientAgent):
    """Maximizes E[G0]: PPO as it is commonly used; with `minibatch_size=0`, Algorithm 2 without its Gini part."""

    name = "ppo"
    Settings = PPOSettings
    settings: PPOSettings

    if TYPE_CHECKING:

        def __init__(
            self, env: AnyEnv | Source, *, seed: int = 0, engine: str = "auto", **settings: Unpack[PPOKwargs]
        ) -> None: ...
