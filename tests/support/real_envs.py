"""Gymnasium's own environments, with actions and observations in other spaces. Needs Box2D. Imports little."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.wrappers import TransformAction

pytest.importorskip("Box2D", reason="needs steadyrl[box2d]", exc_type=ImportError)
with warnings.catch_warnings():  # The import of Box2D and of pygame warns.
    warnings.simplefilter("ignore")
    import gymnasium.envs.box2d


def race(steps=100, **options):
    """CarRacing: images of 96 x 96 pixels in colour."""
    return gym.make("CarRacing-v3", max_episode_steps=steps, **{"continuous": False, **options})


class Views(gym.ObservationWrapper):
    """The race as two images of other sizes, with the colours on another axis, and what is no image beside them."""

    def __init__(self, env):
        super().__init__(env)
        road, car = Box(0, 255, (3, 96, 48), np.uint8), Box(0, 255, (40, 44), np.uint8)
        # In this order, which is not that of the names.
        self.observation_space = Dict(
            [("x", Box(-9, 9, (2,))), ("road", road), ("gear", Discrete(3, start=1)), ("car", car)]
        )

    def observation(self, images):
        mean = np.float32(images.mean(axis=(-3, -2)))
        road, car = np.moveaxis(images[..., ::2, :], -1, -3), images[..., 40:80, 26:70, 1]
        return {"road": road, "car": car, "gear": 1 + mean[..., 0].astype(int) % 3, "x": (mean[..., :2] - 100) / 10}


def lander_with_levels():
    """LunarLander's two engines, each with a choice of thrusts: MultiDiscrete actions."""
    main, side = np.float32([-1, 0.2, 1]), np.float32([-1, 0, 1])
    env = gym.make("LunarLander-v3", continuous=True, max_episode_steps=200)
    return TransformAction(env, lambda k: np.array([main[k[0]], side[k[1]]]), MultiDiscrete([3, 3]))


def lander_with_switches():
    """LunarLander's three engines, each on or off: MultiBinary actions."""
    env = gym.make("LunarLander-v3", continuous=True, max_episode_steps=200)
    return TransformAction(env, lambda on: np.float32([2 * on[0] - 1, 1.0 * on[2] - on[1]]), MultiBinary(3))


class Instruments(gym.ObservationWrapper):
    """LunarLander's observations as a Dict with a Dict and a Tuple in it: where it is, how it moves, its legs."""

    def __init__(self, env):
        super().__init__(env)
        everywhere = Box(-np.inf, np.inf, (2,))
        body = Dict({"position": everywhere, "velocity": everywhere, "tilt": everywhere})
        self.observation_space = Dict({"body": body, "legs": Tuple([Discrete(2), MultiBinary(1)])})

    def observation(self, x):
        body = {"position": x[:2], "velocity": x[2:4], "tilt": x[4:6]}
        return {"body": body, "legs": (int(x[6]), np.int8(x[7:]))}


def lander_with_instruments():
    """Nested observations."""
    return Instruments(gym.make("LunarLander-v3", max_episode_steps=200))
