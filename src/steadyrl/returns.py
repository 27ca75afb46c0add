"""Discounted returns (NumPy and JAX) and rewards to go (JAX), over the last axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def discounted_returns(rewards: Any, gamma: float) -> Any:
    """R = sum_t gamma^t r_t of each episode; `rewards` is [..., T], zero in the padding."""
    xp = jnp if isinstance(rewards, jax.Array) else np
    discounts = np.power(float(gamma), np.arange(rewards.shape[-1]))
    return (rewards * xp.asarray(discounts, dtype=rewards.dtype)).sum(axis=-1)


def rewards_to_go(rewards: Any, gamma: float) -> Any:
    """g_t = r_t + gamma g_{t+1}, from each step to the end; `rewards` is [..., T], zero in the padding."""

    def step(g_next: Any, r: Any) -> tuple[Any, Any]:
        g = r + gamma * g_next
        return g, g

    steps_first = jnp.moveaxis(jnp.asarray(rewards), -1, 0)
    _, g = jax.lax.scan(step, jnp.zeros_like(steps_first[0]), steps_first, reverse=True)
    return jnp.moveaxis(g, 0, -1)
