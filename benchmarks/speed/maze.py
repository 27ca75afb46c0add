"""How fast MG trains in the Guarded Maze: the compiled program beside a plain NumPy step loop, in one run.

    python -m benchmarks.speed.maze [--seeds 10] [--episodes 50000] [--stages 10]

Prints the time of training all seeds after compilation, and the rates of both in episodes and steps per second, stage
by stage: episodes are long and random at the start, and short at the end. The plain loop is the reference of the tests
(tests/reference/algorithm_1.py); it plays a few rounds from where each stage began.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

import steadyrl
from benchmarks.speed.table import Row
from steadyrl.envs.resolve import resolve

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from reference import algorithm_1

PLAIN_ROUNDS = 4
PAPER = {"gamma": 0.999, "optimiser": "sgd", "policy_learning_rate": 1e-4, "value_learning_rate": 1e-2}
PAPER |= {"episodes_per_update": 50, "risk_aversion": 1.2, "credit": "trajectory"}
"""The settings of the paper, which the plain loop implements."""


def compiled(agents, episodes):
    """Seconds and steps of training all agents for so many more episodes."""
    before = sum(agent.timesteps for agent in agents)
    start = time.perf_counter()
    steadyrl.learn_together(agents, total_episodes=episodes, progress_bar=False)
    return time.perf_counter() - start, sum(agent.timesteps for agent in agents) - before


def plain(mdp, theta, V, settings):
    """Seconds, episodes and steps of a few rounds of the plain loop, from a policy and a value function."""
    theta, V, rng = np.array(theta, float), np.array(V, float), np.random.default_rng(0)
    start, steps = time.perf_counter(), 0
    for _ in range(PLAIN_ROUNDS):
        pi = algorithm_1.softmax(theta)
        episodes = [algorithm_1.play_episode(mdp, pi, rng) for _ in range(settings.episodes_per_update)]
        steps += sum(map(len, episodes))
        algorithm_1.update(theta, V, episodes, settings)
    return time.perf_counter() - start, PLAIN_ROUNDS * settings.episodes_per_update, steps


def measure(seeds, episodes, stages):
    """Rows of each stage: seconds, episodes and steps of the compiled program; seconds, episodes, steps of the loop."""
    env, chunk = resolve("steadyrl/GuardedMaze-v0"), episodes // stages

    def make_agents():
        return [steadyrl.MeanGini(env, seed=seed, **PAPER) for seed in range(seeds)]

    compiled(make_agents(), 50)  # Compiles.
    agents, measured = make_agents(), []
    for _ in range(stages):
        learner = agents[0].learner
        seconds, steps = compiled(agents, chunk)
        measured.append((seconds, seeds * chunk, steps, learner))
    mdp, settings = env.unwrapped.maze.mdp, agents[0].settings
    return [(*ours, *plain(mdp, learner.theta, learner.phi, settings)) for *ours, learner in measured]


def rows(peers: bool = True, seeds: int = 10, episodes: int = 20_000, stages: int = 4) -> Iterator[Row]:
    """For the table of all benchmarks."""
    measured = measure(seeds, episodes, stages)
    total = sum(row[1] for row in measured)
    plain_seconds = sum(row[1] * row[3] / row[4] for row in measured)
    ours = total / sum(row[0] for row in measured)
    yield Row(f"MG in the maze, {seeds} seeds in one program", "episodes/s", ours, {"NumPy": total / plain_seconds})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="agents that are trained together")
    parser.add_argument("--episodes", type=int, default=50_000, help="of each seed")
    parser.add_argument("--stages", type=int, default=10, help="equal parts of the training")
    options = parser.parse_args(arguments)
    chunk = options.episodes // options.stages
    measured = measure(options.seeds, options.episodes, options.stages)
    total, steps = (sum(row[i] for row in measured) for i in (0, 2))
    print(
        f"MG, {options.seeds} seeds x {options.episodes:,} episodes ({steps:,} steps), jax {jax.__version__}: "
        f"{total:.1f} s compiled"
    )
    print(f"{'stage':<28}{'compiled':>26}{'plain NumPy':>24}{'ratio':>10}")
    plain_total = 0.0
    for k, (seconds, episodes, steps, p_seconds, p_episodes, p_steps) in enumerate(measured):
        rate, p_rate = episodes / seconds, p_episodes / p_seconds
        plain_total += episodes / p_rate
        title = f"episodes {k * chunk:,}-{(k + 1) * chunk:,}"
        print(
            f"{title:<28}{rate:>12,.0f} ep/s {steps / seconds / 1e6:>5.2f} M/s"
            f"{p_rate:>12,.0f} ep/s {p_steps / p_seconds / 1e3:>4.0f} k/s{rate / p_rate:>9.0f}x"
        )
    print(f"The plain loop would take {plain_total:.0f} s for all of it: {plain_total / total:.0f} times as long.")


if __name__ == "__main__":
    main()
