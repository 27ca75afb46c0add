"""A fund with fat-tailed returns, calm and stormy months, and a share of the money to put into it each month.

python examples/portfolio.py            # trains 12 policies in some minutes, prints and draws the frontier
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from price_of_risk import main

MONTHS = 24
STAKE = 100.0
DRIFT = 0.01
"""Mean monthly return of the fund."""
VOLATILITY = (0.02, 0.08)
"""Standard deviation of a month's return in calm and in stormy months."""
SWITCH = 0.1
"""Probability that calm turns into storm, or storm into calm."""
TAIL = 3
"""Degrees of freedom of Student's t: a finite variance, but no finite fourth moment."""
FEE = 0.001
"""Of what is bought or sold."""


class PortfolioEnv(gym.Env[np.ndarray, np.ndarray]):
    """Choose each month the share of a constant stake that is in the fund; the return is the profit after two years.

    The observation is the share held, an index of the coming month's volatility, which errs by a fifth, and the month.
    """

    def __init__(self) -> None:
        self.observation_space = Box(0, np.inf, (3,))
        self.action_space = Box(0, 1, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Two years begin in cash."""
        super().reset(seed=seed)
        self.stormy = bool(self.np_random.random() < 0.5)
        self.share, self.month = 0.0, 0
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Buy or sell, then wait a month."""
        share = float(np.clip(action[0], 0, 1))
        traded = abs(share - self.share)
        shock = self.np_random.standard_t(TAIL) / np.sqrt(TAIL / (TAIL - 2))
        earned = DRIFT + VOLATILITY[self.stormy] * shock
        self.share = share
        self.stormy ^= bool(self.np_random.random() < SWITCH)
        self.month += 1
        return self._observe(), STAKE * (share * earned - FEE * traded), self.month == MONTHS, False, {}

    def _observe(self) -> np.ndarray:
        index = VOLATILITY[self.stormy] * np.exp(0.2 * self.np_random.standard_normal())
        return np.array([self.share, index, self.month], np.float32)


if __name__ == "__main__":
    main("portfolio:PortfolioEnv", episodes=4_000, risk_aversion="1,1.5,2", policy_learning_rate=1e-3)
