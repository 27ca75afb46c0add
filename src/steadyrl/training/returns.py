"""Discounted returns (NumPy), rewards to go and advantages (JAX), over the last axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steadyrl.training.rows import WHOLE, Rows


def discount_factors(gamma: float, T: int) -> NDArray[np.float64]:
    """[T]: gamma^t."""
    return np.power(float(gamma), np.arange(T))


def discounted_returns(rewards: Any, gamma: float) -> Any:
    """R = sum_t gamma^t r_t of each episode; `rewards` is [..., T], zero in the padding. NumPy."""
    return (rewards * discount_factors(gamma, rewards.shape[-1])).sum(axis=-1)


def rewards_to_go(rewards: Any, gamma: Any, rows: Rows = WHOLE) -> Any:
    """g_t = r_t + gamma g_{t+1}, to the end of the episode; `rewards` is [..., T], zero in the padding."""

    def step(g_next: Any, r: Any) -> tuple[Any, Any]:
        g = r + gamma * g_next
        return g, g

    steps_first = jnp.moveaxis(jnp.asarray(rewards), -1, 0)
    _, g = jax.lax.scan(step, jnp.zeros_like(steps_first[0]), steps_first, reverse=True)
    g = jnp.moveaxis(g, 0, -1)
    return _with_later_rows(g, gamma, rows) if rows.split else g


def _with_later_rows(g: Any, gamma: Any, rows: Rows) -> Any:
    """What g is to the end of the episode, given g within each row [K, B]."""
    B = g.shape[-1]

    def earlier(g_next: Any, row: Any) -> tuple[Any, Any]:
        g_row, continued = row
        after = continued * g_next
        return g_row + gamma**B * after, after

    _, after = jax.lax.scan(earlier, jnp.zeros_like(g[0, 0]), (g[:, 0], rows.continued), reverse=True)
    return g + gamma ** (B - jnp.arange(B)) * after[:, None]


def generalized_advantages(rewards: Any, values: Any, gamma: Any, gae_lambda: Any, rows: Rows = WHOLE) -> Any:
    """A_t = delta_t + gamma lambda A_{t+1}, where delta_t = r_t + gamma V(s_{t+1}) - V(s_t) (Schulman et al. 2016).

    `rewards` and `values` are [..., T], zero in the padding, so that nothing is expected after the last step. Where an
    episode was truncated, its last reward is to hold gamma V of the last observation.
    """
    return rewards_to_go(rewards + gamma * rows.following(values) - values, gamma * gae_lambda, rows)
