"""A robot with a fragile load: on rough ground the noise of its reward grows with the square of its speed.

python examples/fragile_robot.py        # trains 15 policies in some minutes, prints and draws the frontier
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from price_of_risk import main

LENGTH, SECONDS, TIME_LIMIT = 10.0, 0.25, 100
"""Metres of track, duration of a step, and steps before the delivery is given up."""
SPEEDS = np.arange(0.0, 2.25, 0.25)
"""What the robot can choose from, in m/s."""
ROUGH = ((3.0, 5.0), (7.0, 8.0))
"""Where the ground is rough, in metres from the start."""
PAY, WAGE = 4.0, 3.0
"""For each metre, and of each second."""
SHAKING = 2.0
"""Standard deviation of what a metre of rough ground at 1 m/s adds to the value of the load."""


class FragileRobotEnv(gym.Env[np.ndarray, int]):
    """Drive to the end of the track; the action is the speed.

    The observation is the position and whether the ground is rough. Full speed has the highest mean.
    """

    def __init__(self) -> None:
        self.observation_space = Box(0, LENGTH, (2,))
        self.action_space = Discrete(len(SPEEDS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Back to the start of the track."""
        super().reset(seed=seed)
        self.x, self.steps = 0.0, 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Drive for a quarter of a second."""
        before, speed = self.x, float(SPEEDS[action])
        self.x = min(self.x + speed * SECONDS, LENGTH)
        self.steps += 1
        reward = PAY * (self.x - before) - WAGE * SECONDS
        if self._on_rough_ground():
            reward += SHAKING * speed**2 * np.sqrt(self.x - before) * self.np_random.standard_normal()
        return self._observe(), float(reward), self.x >= LENGTH, self.steps == TIME_LIMIT, {}

    def _on_rough_ground(self) -> bool:
        return any(start <= self.x < end for start, end in ROUGH)

    def _observe(self) -> np.ndarray:
        return np.array([self.x, self._on_rough_ground()], np.float32)


if __name__ == "__main__":
    main("fragile_robot:FragileRobotEnv", episodes=8_000, risk_aversion="0.5,1,2,4", policy_learning_rate=1e-3)
