"""Two sides that pay alike, one of them noisy: the smallest world in which a risk-averse agent must take a side."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from steadyrl.envs.episode_metrics import metrics_info
from steadyrl.envs.reward_noise import noise_info
from steadyrl.envs.two_sides_picture import two_sides_picture

LIMIT = 2.0
"""Positions are in [-LIMIT, LIMIT]."""
STRIDE = 0.125
"""How far an action of 1 moves."""


class TwoSidesEnv(gym.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Walk from 0 to either end of a line; a step is paid |x|, to the right of 0.5 with noise.

    Both ends pay alike on average, so without risk aversion either will do. Always left, the return is 105 for sure;
    always right, it has the same mean and a Gini deviation of 12.7.

    The observation is x, and episodes are truncated after 60 steps. `info["episode_metrics"]` reports where the episode
    is (`position`) and the fraction of its steps so far that were noisy (`visiting_rate`); `info["reward_noise"]`
    reports the noise of a noisy step.

    Args:
        render_mode: "rgb_array" for an image, None for no rendering.
        noise_scale: The standard deviation of the noise of a step.
        noisy_above: Steps that end to the right of this are noisy.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, noise_scale: float = 3.0, noisy_above: float = 0.5, *, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode={render_mode!r} is not supported: use None or 'rgb_array'.")
        self.render_mode = render_mode
        if not (np.isfinite(noise_scale) and noise_scale >= 0):
            raise ValueError(f"noise_scale={noise_scale}: a finite number of at least 0 is needed.")
        if not np.isfinite(noisy_above):
            raise ValueError(f"noisy_above={noisy_above}: a finite number is needed.")
        self.noise_scale, self.noisy_above = noise_scale, noisy_above
        self.observation_space = Box(-LIMIT, LIMIT, (1,))
        self.action_space = Box(-1, 1, (1,))
        self._x, self._steps, self._noisy_steps = 0.0, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Back to the middle."""
        super().reset(seed=seed)
        self._x, self._steps, self._noisy_steps = 0.0, 0, 0
        return self._observe(), {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move, and be paid for where the step ends."""
        move = STRIDE * min(max(float(action[0]), -1.0), 1.0)
        self._x = min(max(self._x + move, -LIMIT), LIMIT)
        self._steps += 1
        reward = abs(self._x)
        noise = None
        if self._x > self.noisy_above:
            self._noisy_steps += 1
            noise = self.noise_scale * float(self.np_random.standard_normal())
            reward += noise
        metrics = {"position": self._x, "visiting_rate": self._noisy_steps / self._steps}
        return self._observe(), reward, False, False, {**noise_info(noise), **metrics_info(metrics)}

    def render(self) -> NDArray[np.uint8] | None:
        """The line seen from the side, if `render_mode` is "rgb_array"."""
        return None if self.render_mode is None else two_sides_picture(self._x / LIMIT, self.noisy_above / LIMIT)

    def _observe(self) -> NDArray[np.float32]:
        return np.array([self._x], np.float32)
