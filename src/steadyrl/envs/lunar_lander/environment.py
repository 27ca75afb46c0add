"""LunarLander with a noisy reward for landing on one side, so that a risk-averse agent lands on the other."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from steadyrl.envs.episode_metrics import metrics_info
from steadyrl.envs.fast_simulator import FastSimulator
from steadyrl.envs.lunar_lander.landing import STILL_FLYING, Landing, LandingNoise, landing_metrics
from steadyrl.envs.reward_noise import noise_info, noise_stream

try:
    with warnings.catch_warnings():
        # Box2D's bindings cause this warning when they are imported on Python 3.12 and later.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        from gymnasium.envs.box2d.lunar_lander import LunarLander
except gym.error.DependencyNotInstalled:
    raise gym.error.DependencyNotInstalled(
        "steadyrl/LunarLander-v0 needs Box2D: pip install 'steadyrl[box2d]'"
    ) from None


_TINT = 70
"""The least red of a pixel on the noisy side."""


class LunarLanderEnv(LunarLander):
    """Gymnasium's LunarLander-v3, with noise_scale * N(0, 1) added to the reward for coming to rest on the right.

    The dynamics are exactly those of LunarLander-v3 with the same seed; the noise has a separate random stream. `info`
    reports whether the lander `landed`, `landed_left` or `landed_right` with this step, and the noise in the reward of
    a noisy landing as `reward_noise`. `info["episode_metrics"]` holds `landed_rate` and `landed_left_rate`: 1 if the
    lander came to rest, and came to rest on the left, else 0.

    Args:
        render_mode: "human", "rgb_array" or None.
        **options: The fields of `LandingNoise`, and the options of LunarLander-v3: `continuous`, `gravity`,
            `enable_wind`, `wind_power` and `turbulence_power`.
    """

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        names = {field.name for field in fields(LandingNoise)}
        self.landing_noise = LandingNoise(**{name: options[name] for name in names & options.keys()})
        super().__init__(render_mode, **{name: options[name] for name in options.keys() - names})
        EzPickle.__init__(self, render_mode, **options)
        self._noise = noise_stream(None)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a new flight; `options` is ignored."""
        observation, _ = super().reset(seed=seed, options=options)
        self._noise = noise_stream(seed, self.np_random)
        return observation, _info(STILL_FLYING)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take one step of the flight."""
        observation, reward, terminated, truncated, _ = super().step(action)  # type: ignore[no-untyped-call]
        landing = self.landing_noise.landing(float(observation[0]), reward) if terminated else STILL_FLYING
        noise = self.landing_noise.noise_scale * self._noise.standard_normal() if landing.noisy else None
        if noise is not None:
            reward += noise
        return observation, float(reward), terminated, truncated, {**_info(landing), **noise_info(noise)}

    def render(self) -> Any:
        """As LunarLander-v3; in arrays, the sky on the side with noisy landings is tinted red."""
        picture = super().render()  # type: ignore[no-untyped-call]
        if not isinstance(picture, np.ndarray) or picture.ndim != 3:
            return picture
        picture = picture.copy()
        noise = self.landing_noise
        column = int(np.clip(picture.shape[1] * (1 + noise.dividing_x) / 2, 0, picture.shape[1]))
        side = picture[:, column:] if noise.noisy_side == "right" else picture[:, :column]
        side[..., 0] = np.maximum(side[..., 0], _TINT)
        return picture

    def fast_simulator(self, max_steps: int | None) -> FastSimulator | None:
        """EnvPool's LunarLander; None for a subclass that overrides `step` or `reset`."""
        cls = type(self)
        if cls.step is not LunarLanderEnv.step or cls.reset is not LunarLanderEnv.reset:
            return None
        from steadyrl.envs.lunar_lander.envpool import EnvPoolLunarLander, unsupported

        return FastSimulator(
            "envpool",
            lambda size: EnvPoolLunarLander(self, size, max_steps),
            unsupported(self),
            same_episodes=False,
        )


def _info(landing: Landing) -> dict[str, Any]:
    return {
        "landed": landing.landed,
        "landed_left": landing.left,
        "landed_right": landing.landed and not landing.left,
        **metrics_info(landing_metrics(landing)),
    }
