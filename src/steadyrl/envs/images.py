"""Images in observations: where their pixels are in a row of features, and which axis holds the channels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Tuple

MIN_SIDE = 36
"""Of an image that convolutions are used for, in pixels: with fewer, the Nature CNN has no output."""


class Image(NamedTuple):
    """An image of 2 or 3 dimensions, or a stack of such images, as a part of a row of features."""

    shape: tuple[int, ...]
    """As the space has it."""
    start: int
    """Where its first pixel is in the row."""

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return math.prod(self.shape)

    @property
    def axes(self) -> tuple[int, int, tuple[int, ...]]:
        """The axes of height, width, and of what counts as channels: colours, and the images of a stack."""
        stacked = tuple(range(len(self.shape) - 3))
        if len(self.shape) == 2:
            return 0, 1, ()
        first = len(stacked)
        channels_first = self.shape[first] < self.shape[-1]
        channels = first if channels_first else first + 2
        height, width = (axis for axis in range(first, first + 3) if axis != channels)
        return height, width, (*stacked, channels)

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width."""
        height, width, _ = self.axes
        return self.shape[height], self.shape[width]

    @property
    def channels(self) -> int:
        """Numbers for each pixel."""
        return math.prod(self.shape[axis] for axis in self.axes[2])

    def channels_last(self, rows: Any) -> Any:
        """[k, inputs] to [k, height, width, channels], in NumPy or in JAX."""
        height, width, channels = self.axes
        images = rows[:, self.start : self.start + self.size].reshape(-1, *self.shape)
        ordered = images.transpose(0, *(axis + 1 for axis in (height, width, *channels)))
        return ordered.reshape(-1, *self.sides, self.channels)


def is_image(space: gym.Space[Any]) -> bool:
    """Whether it holds pixels from 0 to 255: networks get them from 0 to 1."""
    return isinstance(space, Box) and space.dtype == np.uint8 and bool(np.all(space.high == 255))


def is_large_image(space: gym.Space[Any]) -> bool:
    """Whether it holds images that convolutions can be used for."""
    if not (is_image(space) and space.shape is not None and 2 <= len(space.shape) <= 4):
        return False
    return min(Image(space.shape, 0).sides) >= MIN_SIDE


def large_images(space: gym.Space[Any], start: int = 0) -> tuple[Image, ...]:
    """The images in observations that convolutions can be used for, also those inside of a Dict or a Tuple."""
    if is_large_image(space):
        assert space.shape is not None
        return (Image(space.shape, start),)
    parts: list[Any] = []
    if isinstance(space, Dict | Tuple):
        parts = list(space.values() if isinstance(space, Dict) else space.spaces)
    found: list[Image] = []
    for part in parts:
        found += large_images(part, start)
        start += int(gym.spaces.flatdim(part))
    return tuple(found)
