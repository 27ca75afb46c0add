"""Discounted returns (NumPy), rewards to go and advantages (JAX), over the last axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


def discount_factors(gamma: float, T: int) -> NDArray[np.float64]:
    """[T]: gamma^t."""
    return np.power(float(gamma), np.arange(T))


def discounted_returns(rewards: Any, gamma: float) -> Any:
    """R = sum_t gamma^t r_t of each episode; `rewards` is [..., T], zero in the padding. NumPy."""
    return (rewards * discount_factors(gamma, rewards.shape[-1])).sum(axis=-1)


def rewards_to_go(rewards: Any, gamma: Any) -> Any:
    """g_t = r_t + gamma g_{t+1}, from each step to the end; `rewards` is [..., T], zero in the padding."""

    def step(g_next: Any, r: Any) -> tuple[Any, Any]:
        g = r + gamma * g_next
        return g, g

    steps_first = jnp.moveaxis(jnp.asarray(rewards), -1, 0)
    _, g = jax.lax.scan(step, jnp.zeros_like(steps_first[0]), steps_first, reverse=True)
    return jnp.moveaxis(g, 0, -1)


def generalized_advantages(rewards: Any, values: Any, gamma: Any, gae_lambda: Any) -> Any:
    """A_t = delta_t + gamma lambda A_{t+1}, where delta_t = r_t + gamma V(s_{t+1}) - V(s_t) (Schulman et al. 2016).

    `rewards` and `values` are [..., T], zero in the padding, so that nothing is expected after the last step. Where an
    episode was truncated, its last reward is to hold gamma V of the last observation.
    """
    following = jnp.concatenate([values[..., 1:], jnp.zeros_like(values[..., :1])], axis=-1)
    return rewards_to_go(rewards + gamma * following - values, gamma * gae_lambda)
