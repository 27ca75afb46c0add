"""Pixels reach networks as numbers from 0 to 1: with 0 to 255 they would not learn."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from steadyrl.envs import spaces

IMAGE = Box(0, 255, (2, 3), np.uint8)
PIXELS = np.array([[0, 51, 102], [153, 204, 255]], np.uint8)
SCALED = [0, 0.2, 0.4, 0.6, 0.8, 1]


def test_pixels_are_scaled():
    rows = spaces.features(IMAGE, np.stack([PIXELS, PIXELS]))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [SCALED] * 2, rtol=1e-6)


def test_pixels_in_a_dict_are_scaled_once():
    space = Dict([("image", IMAGE), ("more", Dict([("image", IMAGE), ("door", Discrete(2))])), ("x", Box(-9, 9, (1,)))])
    one = {"image": PIXELS, "more": {"image": PIXELS, "door": 1}, "x": np.float32([7])}
    expected = [*SCALED, *SCALED, 0, 1, 7]
    row = spaces.flat(space, one)
    np.testing.assert_allclose(row, expected, rtol=1e-6)
    np.testing.assert_allclose(spaces.features(space, row[None]), [expected], rtol=1e-6)
    np.testing.assert_allclose(spaces.as_batch(space, one)[0], [expected], rtol=1e-6)
    several = {"image": PIXELS[None], "more": {"image": PIXELS[None], "door": np.array([1])}, "x": np.float32([[7]])}
    np.testing.assert_allclose(spaces.flat_rows(space, several), [expected], rtol=1e-6)
    assert row.shape == (gym.spaces.flatdim(space),)


@pytest.mark.parametrize(
    "space", [Box(0, 10, (2,), np.uint8), Box(0, 255, (2,), np.float32), Box(0, 255, (2,), np.int32)]
)
def test_other_numbers_are_left_alone(space):
    np.testing.assert_array_equal(spaces.features(space, np.full((1, 2), 5, space.dtype)), [[5, 5]])
