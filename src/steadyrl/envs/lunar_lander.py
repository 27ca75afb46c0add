"""LunarLander with a noisy reward for landing on one side: a steady lander chooses the other."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from steadyrl.envs.reward_noise import noise_stream
from steadyrl.simulators.fast_faces import FastFace

try:
    with warnings.catch_warnings():
        # Box2D's bindings say this of themselves when they are imported on Python 3.12 and later.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        from gymnasium.envs.box2d.lunar_lander import LunarLander
except gym.error.DependencyNotInstalled:
    raise gym.error.DependencyNotInstalled(
        "steadyrl/LunarLander-v0 needs Box2D: pip install 'steadyrl[box2d]'"
    ) from None

_REST_REWARD = 100
_CRASH_REWARD = -100


class Landing(NamedTuple):
    """How a step ended the flight."""

    landed: bool
    """The lander came to rest."""
    left: bool
    """It came to rest on the left side."""
    noisy: bool
    """Its reward is noisy."""


STILL_FLYING = Landing(landed=False, left=False, noisy=False)


@dataclass(frozen=True)
class LandingNoise:
    """Which landings are paid a noisy reward, and how noisy.

    Deviation 26: the paper says "lands in the right area", and here that is coming to rest, which pays +100.
    """

    noise_scale: float = 90.0
    """What a draw from N(0, 1) is multiplied by."""
    dividing_x: float = 0.0
    """Where left ends: x <= dividing_x is left. The middle of the landing pad is 0, the edges of the world -1 and 1."""
    noisy_side: str = "right"
    """"right" or "left"."""
    noisy_landings: str = "rest"
    """"rest", or "rest_or_crash" to give noise to those that crash into the ground as well."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_scale) and self.noise_scale >= 0):
            raise ValueError(f"noise_scale={self.noise_scale}: the scale of the noise is a number from 0 up.")
        if not math.isfinite(self.dividing_x):
            raise ValueError(f"dividing_x={self.dividing_x}: give a place; the world goes from -1 to 1.")
        if self.noisy_side not in ("right", "left"):
            raise ValueError(f"noisy_side={self.noisy_side!r}: choose 'right' or 'left'.")
        if self.noisy_landings not in ("rest", "rest_or_crash"):
            raise ValueError(f"noisy_landings={self.noisy_landings!r}: choose 'rest' or 'rest_or_crash'.")

    def landing(self, x: float, reward: float) -> Landing:
        """What the task's last step was, from where the lander is and what the task paid; for terminated steps."""
        left = x <= self.dividing_x
        landed = reward == _REST_REWARD
        # The task pays the same for leaving the world sideways, which is no landing.
        crashed = reward == _CRASH_REWARD and abs(x) < 1
        counts = landed or (crashed and self.noisy_landings == "rest_or_crash")
        return Landing(landed, landed and left, counts and left == (self.noisy_side == "left"))


def landing_facts(landing: Landing) -> dict[str, float]:
    """What to say of an episode; both are shares of all episodes, not of those that landed."""
    return {"landed_rate": float(landing.landed), "landed_left_rate": float(landing.left)}


class LunarLanderEnv(LunarLander):
    """Gymnasium's LunarLander-v3, and noise_scale * N(0, 1) more for coming to rest on the right.

    It moves exactly as Gymnasium's does from the same seed; the noise has a stream of its own. `info` says of each
    step whether the lander `landed`, `landed_left` or `landed_right` with it, and `info["facts"]` the `landed_rate`
    and `landed_left_rate` of the episode, the latter being 1 for coming to rest on the left and 0 for all else.

    Args:
        render_mode: "human", "rgb_array" or None.
        **options: the fields of `LandingNoise`, and LunarLander's own options: `continuous`, `gravity`,
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
        """A new flight; `options` are not used."""
        observation, _ = super().reset(seed=seed, options=options)
        self._noise = noise_stream(seed, self.np_random)
        return observation, _info(STILL_FLYING)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One step of the flight."""
        observation, reward, terminated, truncated, _ = super().step(action)  # type: ignore[no-untyped-call]
        landing = self.landing_noise.landing(float(observation[0]), reward) if terminated else STILL_FLYING
        if landing.noisy:
            reward += self.landing_noise.noise_scale * self._noise.standard_normal()
        return observation, float(reward), terminated, truncated, _info(landing)

    def fast_face(self, max_steps: int | None) -> FastFace | None:
        """EnvPool's LunarLander; None for a subclass that steps or resets in its own way."""
        own = type(self)
        if own.step is not LunarLanderEnv.step or own.reset is not LunarLanderEnv.reset:
            return None
        from steadyrl.simulators.lunar_lander_envpool import EnvPoolLunarLander, obstacle

        return FastFace("envpool", lambda size: EnvPoolLunarLander(self, size, max_steps), obstacle(self))


def _info(landing: Landing) -> dict[str, Any]:
    return {
        "landed": landing.landed,
        "landed_left": landing.left,
        "landed_right": landing.landed and not landing.left,
        "facts": landing_facts(landing),
    }
