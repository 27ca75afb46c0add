"""CartPole without velocities, with a memory and without: `python -m benchmarks.learning.memory --seeds 0 1 2`.

Prints a line for each run, and the lines of the table in docs/networks.md.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np

import steadyrl
from steadyrl.base.values import read_value

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "PPO": ("PPO", {}),
    "MG with PPO": ("MeanGini", {"mean": "ppo"}),
    "MG": ("MeanGini", {"mean": "vpg"}),
    "REINFORCE": ("Reinforce", {}),
}
"""Title -> agent and settings; the rest are defaults."""
STEPS, EVALUATED = 100_000, 200


def positions() -> gym.Env[Any, Any]:
    """CartPole in which only the positions of cart and pole are observed."""
    env = gym.make("CartPole-v1")
    space: Any = env.observation_space
    seen = gym.spaces.Box(space.low[::2], space.high[::2])
    return gym.wrappers.TransformObservation(env, lambda observation: observation[::2], seen)


def run(title: str, network: str, seed: int, steps: int, settings: dict[str, Any]) -> tuple[float, float]:
    """The mean return of a trained policy that samples its actions, and the seconds of training."""
    name, more = AGENTS[title]
    agent = getattr(steadyrl, name)(positions, network=network, seed=seed, **{**more, **settings})
    start = time.perf_counter()
    agent.learn(total_timesteps=steps, progress_bar=False)
    seconds = time.perf_counter() - start
    return steadyrl.evaluate(agent, positions, episodes=EVALUATED).mean.value, seconds


def table(results: dict[tuple[str, str], list[tuple[float, float]]]) -> str:
    """A line for each agent and network."""
    lines = ["| agent | network | mean return of each seed | mean |", "| --- | --- | --- | ---: |"]
    for (title, network), runs in results.items():
        returns = np.array(runs)[:, 0]
        each = ", ".join(f"{value:.0f}" for value in returns)
        lines.append(f"| {title} | `{network}` | {each} | {returns.mean():.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--agents", nargs="+", default=["PPO", "MG with PPO"], choices=list(AGENTS))
    parser.add_argument("--networks", nargs="+", default=["gru", "mlp"])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    settings = {name: read_value(value) for name, value in (pair.split("=", 1) for pair in given.set)}
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for title in given.agents:
        for network in given.networks:
            for seed in given.seeds:
                result = run(title, network, seed, given.steps, settings)
                results.setdefault((title, network), []).append(result)
                print(f"{title}, {network}, seed {seed}: {result[0]:.1f} in {result[1]:.0f} s", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
