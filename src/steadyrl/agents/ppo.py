"""PPO: proximal policy optimization (Schulman et al. 2017), the risk-neutral baseline of Algorithm 2."""

from __future__ import annotations

from steadyrl.agents.policy_gradient import PolicyGradientAgent
from steadyrl.agents.ppo_settings import PPOSettings


class PPO(PolicyGradientAgent):
    """Maximizes E[G0]: Algorithm 2 without its Gini part; with `minibatch_size`, PPO as it is commonly used."""

    name = "ppo"
    Settings = PPOSettings
    settings: PPOSettings
