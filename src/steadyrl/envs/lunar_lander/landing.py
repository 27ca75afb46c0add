"""The outcome of a flight of LunarLander, and which landings have a noisy reward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

_REST_REWARD = 100
_CRASH_REWARD = -100


class Landing(NamedTuple):
    """The outcome of a flight at one of its steps."""

    landed: bool
    """The lander came to rest."""
    left: bool
    """It came to rest on the left side."""
    noisy: bool
    """The reward of this step is noisy."""


STILL_FLYING = Landing(landed=False, left=False, noisy=False)


@dataclass(frozen=True)
class LandingNoise:
    """Which landings have a noisy reward, and the scale of the noise.

    The paper adds noise when the lander "lands in the right area"; here that means coming to rest there, which has
    reward +100 (deviation 26).
    """

    noise_scale: float = 90.0
    """The standard deviation of the noise."""
    dividing_x: float = 0.0
    """x <= dividing_x is the left side. The centre of the landing pad is at 0, the edges of the screen at -1 and 1."""
    noisy_side: str = "right"
    """The side with noisy rewards: "right" or "left"."""
    noisy_landings: str = "rest"
    """"rest", or "rest_or_crash" to add noise to crashes into the ground as well."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_scale) and self.noise_scale >= 0):
            raise ValueError(f"noise_scale={self.noise_scale}: the scale of the noise must be finite and at least 0.")
        if not math.isfinite(self.dividing_x):
            raise ValueError(f"dividing_x={self.dividing_x}: it must be finite; the screen extends from -1 to 1.")
        if self.noisy_side not in ("right", "left"):
            raise ValueError(f"noisy_side={self.noisy_side!r}: choose 'right' or 'left'.")
        if self.noisy_landings not in ("rest", "rest_or_crash"):
            raise ValueError(f"noisy_landings={self.noisy_landings!r}: choose 'rest' or 'rest_or_crash'.")

    def landing(self, x: float, reward: float) -> Landing:
        """The outcome of a flight that terminated at `x` with this `reward` of LunarLander-v3."""
        left = x <= self.dividing_x
        landed = reward == _REST_REWARD
        # Leaving the screen sideways has the same reward as a crash, but is not a landing.
        crashed = reward == _CRASH_REWARD and abs(x) < 1
        counts = landed or (crashed and self.noisy_landings == "rest_or_crash")
        return Landing(landed, landed and left, counts and left == (self.noisy_side == "left"))


def landing_metrics(landing: Landing) -> dict[str, float]:
    """The metrics of an episode; their means are rates over all episodes, not only those that landed."""
    return {"landed_rate": float(landing.landed), "landed_left_rate": float(landing.left)}
