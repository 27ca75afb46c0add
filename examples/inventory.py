"""A shop that orders weekly, loses sales when it runs out of stock, and does not see the demand that it lost.

python examples/inventory.py            # trains 15 policies in some minutes, prints and draws the frontier
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from price_of_risk import main

WEEKS = 13
PRICE, COST, HOLDING = 5.0, 3.0, 0.1
"""Of one unit: what a customer pays, what the shop pays, and a week in stock."""
SPOILED = 0.3
"""Share of the unsold stock that spoils each week."""
DEMAND = (6.0, 18.0)
"""Mean weekly demand in a quiet and in a busy market."""
SWITCH = 0.1
"""Probability that the market changes from one week to the next."""
ORDERS = np.arange(0, 26, 2)


class InventoryEnv(gym.Env[np.ndarray, int]):
    """Each week: last week's order arrives, customers come, the rest is stored or spoils, and the next order is placed.

    The observation is stock, units on order, last week's sales and the week. The market (quiet or busy) is hidden.
    """

    def __init__(self) -> None:
        self.observation_space = Box(0, np.inf, (4,))
        self.action_space = Discrete(len(ORDERS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """A season begins with a week's stock, in a market that may be quiet or busy."""
        super().reset(seed=seed)
        self.busy = bool(self.np_random.random() < 0.5)
        self.stock, self.on_order, self.sales, self.week = 12.0, 12.0, 0.0, 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Sell for a week, then order."""
        self.stock += self.on_order
        demand = self.np_random.poisson(DEMAND[self.busy])
        self.sales = min(self.stock, demand)
        self.stock = np.floor((self.stock - self.sales) * (1 - SPOILED))
        self.on_order = float(ORDERS[action])
        self.busy ^= bool(self.np_random.random() < SWITCH)
        self.week += 1
        over = self.week == WEEKS  # Stock that is left is worth nothing.
        paid = 0.0 if over else COST * self.on_order
        reward = PRICE * self.sales - paid - HOLDING * self.stock
        return self._observe(), float(reward), over, False, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.stock, self.on_order, self.sales, self.week], np.float32)


if __name__ == "__main__":
    main("inventory:InventoryEnv", episodes=6_000, risk_aversion="0.5,1,1.5,2")
