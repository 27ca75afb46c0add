"""The picture of TwoSides: the line, its noisy part, and the agent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 240, 80
SKY, LINE, AGENT = (255, 255, 255), (120, 124, 132), (40, 44, 52)
NOISY = (248, 214, 210)
_MARGIN, _RADIUS = 16, 9


def two_sides_picture(x: float, noisy_above: float) -> NDArray[np.uint8]:
    """[80, 240, 3]: the line from -1 to 1 with the agent at `x`; steps right of `noisy_above` are noisy, tinted red."""

    def column(position: float) -> int:
        return round(_MARGIN + (WIDTH - 1 - 2 * _MARGIN) * (position + 1) / 2)

    image = np.full((HEIGHT, WIDTH, 3), SKY, np.uint8)
    if noisy_above < 1:
        image[:, max(column(noisy_above), 0) if noisy_above > -1 else 0 :] = NOISY
    ground = HEIGHT * 2 // 3
    image[ground : ground + 2, _MARGIN : WIDTH - _MARGIN] = LINE
    for mark in (-1.0, 0.0, 1.0):
        image[ground - 5 : ground + 7, column(mark) : column(mark) + 2] = LINE
    row, col = np.ogrid[:HEIGHT, :WIDTH]
    image[(row - ground + _RADIUS) ** 2 + (col - column(x)) ** 2 <= _RADIUS**2] = AGENT
    return image
