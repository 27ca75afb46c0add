"""The hidden state that `predict` of a recurrent agent is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.shown import shown


def state_rows(state: Any, episode_start: Any, shape: tuple[int, ...], size: int) -> NDArray[np.float32]:
    """[k, size]: the states for observations of a shape; zeros where episodes start, and everywhere without a state."""
    rows = np.zeros((*shape, size), np.float32)
    if state is not None:
        given = np.asarray(state)
        if given.shape != rows.shape or not np.issubdtype(given.dtype, np.floating) or not np.isfinite(given).all():
            raise ValueError(
                f"state={shown(state)}: the hidden state of such an observation is a finite array of shape "
                f"{rows.shape}. Pass the state that predict returned last, or None where episodes start."
            )
        rows[...] = given
    if episode_start is not None:
        starts = np.asarray(episode_start, bool)
        if starts.size != 1 and starts.shape != shape:
            raise ValueError(
                f"episode_start of shape {starts.shape}: observations are of shape {shape}. Pass one for each, or one "
                "for all."
            )
        rows[starts if starts.shape == shape else np.full(shape, starts.item())] = 0
    return rows.reshape(-1, size)
