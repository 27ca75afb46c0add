"""Up to which lambda moving is better than standing still, in the distance variants, and what speed does to D.

A robot that stands at x <= 0 earns nothing for sure. One that moves at a constant speed earns the speed in each step,
less the cost of actions as large as uniform ones are on average, and meets noise until it is past x = 20.
E - lambda D prefers moving as long as lambda < E / D. The noise is a sum of normal numbers, so D is its standard
deviation over sqrt(pi).
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

import steadyrl  # noqa: F401  (Registers the environments.)

SPEEDS = {"steadyrl/HalfCheetahDistance-v0": (0.3, 1.0, 3.0), "steadyrl/SwimmerDistance-v0": (0.06, 0.36)}
"""Meters per second: slow, as policies are at first, and as fast as they become."""
SWIMMER_SPEEDS = (0.015, 0.03, 0.05, 0.06, 0.15, 0.36, 1.0)


def mean_and_deviation(env: Any, speed: float, gamma: float = 1.0) -> tuple[float, float]:
    """E and D of moving at a constant speed."""
    task, steps = env.unwrapped.task, env.spec.max_episode_steps
    x = speed * env.unwrapped.dt * np.arange(1, steps + 1)
    noisy = (x > task.noisy_above) & (x < task.noisy_below)
    scale = noisy * task.noise_scale * (1 - x / task.fades_over)
    discounts = gamma ** np.arange(steps)
    cost = task.control_cost_weight * env.action_space.shape[0] / 3
    mean = (task.forward_reward_weight * speed - cost) * discounts.sum()
    return float(mean), math.sqrt(np.sum((discounts * scale) ** 2) / math.pi)


def break_even(env: Any, speed: float, gamma: float = 1.0) -> float:
    """E / D of moving at a constant speed."""
    mean, deviation = mean_and_deviation(env, speed, gamma)
    return mean / deviation


def table() -> str:
    """For each variant and speed, without discounting and with the paper's gamma."""
    lines = ["| environment | speed, m/s | lambda, undiscounted | lambda, gamma = 0.99 |", "| --- " * 4 + "|"]
    for name, speeds in SPEEDS.items():
        env = gym.make(name)
        for speed in speeds:
            lines.append(f"| {name} | {speed:g} | {break_even(env, speed):.2f} | {break_even(env, speed, 0.99):.2f} |")
    return "\n".join(lines)


def swimmer_table(risk_aversion: float) -> str:
    """E and D of a swimmer at several speeds, undiscounted, and what a lambda makes of them."""
    env = gym.make("steadyrl/SwimmerDistance-v0")
    seconds = env.spec.max_episode_steps * env.unwrapped.dt  # type: ignore[union-attr, attr-defined, operator]
    heads = ["speed, m/s", "distance, m", "E", "D", f"E - {risk_aversion:g} D"]
    lines = [f"| {' | '.join(heads)} |", "| ---: " * len(heads) + "|", "| standing at x <= 0 | 0 | 0 | 0 | 0 |"]
    for speed in SWIMMER_SPEEDS:
        E, D = mean_and_deviation(env, speed)
        lines.append(f"| {speed:g} | {speed * seconds:.1f} | {E:.1f} | {D:.1f} | {E - risk_aversion * D:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
    print(swimmer_table(0.2))
