"""What credit by step costs beside credit by trajectory: `python -m benchmarks.speed.risk_credit`.

MG with default settings, once with each credit, learns in the maze, in TwoSides and in HalfCheetah: microseconds a step
of playing and learning together, medians of interleaved rounds. All passes over a batch are made (`target_kl=0`), so
that both learn the same amount. Only ratios compare between machines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import steadyrl

ENVS = {"maze": "steadyrl/GuardedMaze-v0", "TwoSides": "steadyrl/TwoSides-v0", "HalfCheetah": "steadyrl/HalfCheetah-v0"}
BATCHES = {"maze": 200, "TwoSides": 8, "HalfCheetah": 1}
"""A round has so many batches of episodes."""
CREDITS = ("step", "trajectory")


class Cost(NamedTuple):
    """Of one agent in one round, in microseconds a step."""

    wall: float
    cpu: float


def make(env: str, credit: str) -> steadyrl.MeanGini:
    """An agent whose program is compiled."""
    settings: dict[str, Any] = {"target_kl": 0.0} if env != "maze" else {}
    agent = steadyrl.MeanGini(ENVS[env], credit=credit, seed=0, **settings)
    one_round(agent, BATCHES[env])
    return agent


def one_round(agent: steadyrl.MeanGini, batches: int) -> Cost:
    """Learn from so many batches."""
    steps, wall, cpu = agent.timesteps, time.perf_counter(), time.process_time()
    agent.learn(total_episodes=batches * agent.settings.episodes_per_update, progress_bar=False)
    wall, cpu, steps = time.perf_counter() - wall, time.process_time() - cpu, agent.timesteps - steps
    return Cost(1e6 * wall / steps, 1e6 * cpu / steps)


def measure(env: str, rounds: int) -> dict[str, list[Cost]]:
    """The rounds of both agents, in turns; which one is first alternates."""
    agents = {credit: make(env, credit) for credit in CREDITS}
    costs: dict[str, list[Cost]] = {credit: [] for credit in CREDITS}
    for k in range(rounds):
        for credit in CREDITS if k % 2 else reversed(CREDITS):
            costs[credit].append(one_round(agents[credit], BATCHES[env]))
    return costs


def line(env: str, costs: dict[str, list[Cost]]) -> str:
    """The medians, and the median of the ratios of single rounds with their range."""
    step, trajectory = (statistics.median(each.wall for each in costs[credit]) for credit in CREDITS)
    text = f"{env:<12}{step:>10.1f}{trajectory:>12.1f}"
    for kind in Cost._fields:
        pairs = zip(*(costs[credit] for credit in CREDITS), strict=True)
        ratios = [getattr(one, kind) / getattr(other, kind) for one, other in pairs]
        text += f"{statistics.median(ratios):>9.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured")
    parser.add_argument("--envs", nargs="+", choices=list(ENVS), default=list(ENVS))
    options = parser.parse_args(arguments)
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}.")
    print(f"{'us a step':<12}{'by step':>10}{'trajectory':>12}   ratio of wall-clock    ratio of CPU time", flush=True)
    for env in options.envs:
        print(line(env, measure(env, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
