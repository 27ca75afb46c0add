"""A robot that carries a fragile load over a track with rough stretches: jolts there grow with the square of its speed.

python examples/fragile_robot.py        # trains 12 policies in some minutes, prints and draws the frontier
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from price_of_risk import main

LENGTH, SECONDS, TIME_LIMIT = 10.0, 0.25, 100
"""Metres of track, duration of a step, and steps before the delivery is given up."""
FASTEST, ACCELERATION = 2.0, 2.0
ROUGH = ((3.0, 5.0), (7.0, 8.0))
"""Where the ground is rough, in metres from the start."""
PAY, WAGE = 6.0, 6.0
"""For each metre, and of each second."""
JOLTS, DAMAGE = 0.16, 3.0
"""Probability of a jolt in a metre of rough ground, and its mean damage at 1 m/s."""


class FragileRobotEnv(gym.Env[np.ndarray, np.ndarray]):
    """Drive to the end of the track; the action is the speed to aim at, as a share of the highest.

    The observation is position, speed and whether the ground is rough. Driving nearly at full speed has the highest mean.
    """

    def __init__(self) -> None:
        self.observation_space = Box(0, LENGTH + FASTEST, (3,))
        self.action_space = Box(0, 1, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """At rest at the start of the track."""
        super().reset(seed=seed)
        self.x, self.speed, self.steps = 0.0, 0.0, 0
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Drive for a quarter of a second."""
        wanted, change = FASTEST * float(np.clip(action[0], 0, 1)), ACCELERATION * SECONDS
        self.speed += float(np.clip(wanted - self.speed, -change, change))
        before = self.x
        self.x = min(self.x + self.speed * SECONDS, LENGTH)
        self.steps += 1
        reward = PAY * (self.x - before) - WAGE * SECONDS
        if self._on_rough_ground() and self.np_random.random() < JOLTS * (self.x - before):
            reward -= DAMAGE * self.speed**2 * self.np_random.exponential()
        return self._observe(), float(reward), self.x >= LENGTH, self.steps == TIME_LIMIT, {}

    def _on_rough_ground(self) -> bool:
        return any(start <= self.x < end for start, end in ROUGH)

    def _observe(self) -> np.ndarray:
        return np.array([self.x, self.speed, self._on_rough_ground()], np.float32)


if __name__ == "__main__":
    main("fragile_robot:FragileRobotEnv", episodes=3_000, risk_aversion="1,2,3", policy_learning_rate=1e-3)
