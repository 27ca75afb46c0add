"""A warning about rewards whose differences are lost in what they have in common."""

from __future__ import annotations

import warnings

import numpy as np

from steadyrl.training.algorithm import Trainee

STEPS = 1000
"""How many rewards are looked at, those of the first steps."""
OFFSET, VALUE = 100, 1e4
"""Warn if the mean reward exceeds so many standard deviations, and its value mean / (1 - gamma) this number.

A network first has to learn the value, and as long as its error exceeds the differences between rewards, these cannot
tell good actions from bad ones. Measured with DQN for 10,000 steps, rewards of 0 or 1 plus an offset, 50 steps in an
episode, gamma 0.9 and 0.99, two seeds each: an offset of 10 (a mean of 21 standard deviations) makes no difference;
with 100 or 1000 fewer good actions are found, in half of the runs no more than by chance; with 1e6 none are. Rewards
of about 1 that differ little, such as an alive bonus minus control costs, are learned from: their value is small.
"""


class RewardOffsetCheck:
    """Looks at the first rewards of a training, and warns once if they are nearly the same large number."""

    def __init__(self, agent: Trainee) -> None:
        self._env_name, self._gamma = agent.env_name, float(agent.settings.gamma)
        self._rewards: list[float] = []

    def add(self, reward: float) -> None:
        """The next reward."""
        if len(self._rewards) < STEPS:
            self._rewards.append(float(reward))
            if len(self._rewards) == STEPS:
                self._check()

    def _check(self) -> None:
        mean, spread = float(np.mean(self._rewards)), float(np.std(self._rewards))
        # Rewards that are all the same, as in CartPole, are no offset: episodes differ in their length.
        same = min(self._rewards) == max(self._rewards)
        # Without discounting, values are sums over an episode: count as many steps as were looked at.
        value = abs(mean) / max(1 - self._gamma, 1 / STEPS)
        if not same and abs(mean) > OFFSET * spread and value > VALUE:
            warnings.warn(
                f"{self._env_name}: the first {STEPS} rewards are {mean:.6g} on average, with a standard deviation of "
                f"only {spread:.2g}, too little to be learned beside it. Subtract the offset, for example with "
                f"gymnasium.wrappers.TransformReward(env, lambda r: r {'-' if mean > 0 else '+'} {abs(mean):.6g}).",
                UserWarning,
                stacklevel=2,
            )
