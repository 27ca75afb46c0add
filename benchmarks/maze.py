"""How fast MG trains in the Guarded Maze: the compiled program beside a plain NumPy step loop, in one run.

    python benchmarks/maze.py

Prints the time for 10 seeds x 50,000 episodes after compilation, and the rates of both in episodes and steps per
second, stage by stage: episodes are long and random at the start, and short at the end. The plain loop plays a few
rounds from where each stage began.
"""

from __future__ import annotations

import time

import jax
import numpy as np
import plain_maze

import steadyrl
from steadyrl.envs.resolve import resolve

SEEDS, EPISODES, CHUNK = 10, 50_000, 5_000
PLAIN_ROUNDS = 4


def compiled(agents, episodes):
    """Seconds and steps of training all agents on."""
    before = sum(agent.timesteps for agent in agents)
    start = time.perf_counter()
    steadyrl.learn_together(agents, total_episodes=episodes, progress_bar=False)
    return time.perf_counter() - start, sum(agent.timesteps for agent in agents) - before


def plain(mdp, theta, V, settings):
    """Seconds, episodes and steps of a few rounds of the plain loop, going on from a policy and a value function."""
    theta, V, rng = np.array(theta, float), np.array(V, float), np.random.default_rng(0)
    start, steps = time.perf_counter(), 0
    for _ in range(PLAIN_ROUNDS):
        pi = plain_maze.softmax(theta)
        episodes = [plain_maze.play_episode(mdp, pi, rng) for _ in range(settings.episodes_per_update)]
        steps += sum(map(len, episodes))
        plain_maze.update(theta, V, episodes, settings)
    return time.perf_counter() - start, PLAIN_ROUNDS * settings.episodes_per_update, steps


def main() -> None:
    """Measure and print."""
    env = resolve("steadyrl/GuardedMaze-v0")
    mdp = env.unwrapped.maze.mdp
    steadyrl.learn_together(
        [steadyrl.MeanGini(env, seed=s) for s in range(SEEDS)], total_episodes=50, progress_bar=False
    )
    agents = [steadyrl.MeanGini(env, seed=s) for s in range(SEEDS)]
    stages = []
    for _ in range(EPISODES // CHUNK):
        learner = agents[0].learner
        seconds, steps = compiled(agents, CHUNK)
        stages.append((seconds, steps, learner))
    total, steps = sum(s[0] for s in stages), sum(s[1] for s in stages)
    print(f"MG, {SEEDS} seeds x {EPISODES:,} episodes ({steps:,} steps), jax {jax.__version__}: {total:.1f} s compiled")
    print(f"{'stage':<28}{'compiled':>26}{'plain NumPy':>24}{'ratio':>10}")
    plain_total = 0.0
    for k, (seconds, steps, learner) in enumerate(stages):
        p_seconds, p_episodes, p_steps = plain(mdp, learner.theta, learner.phi, agents[0].settings)
        rate, p_rate = SEEDS * CHUNK / seconds, p_episodes / p_seconds
        plain_total += SEEDS * CHUNK / p_rate
        told = f"episodes {k * CHUNK:,}-{(k + 1) * CHUNK:,}"
        print(
            f"{told:<28}{rate:>12,.0f} ep/s {steps / seconds / 1e6:>5.2f} M/s"
            f"{p_rate:>12,.0f} ep/s {p_steps / p_seconds / 1e3:>4.0f} k/s{rate / p_rate:>9.0f}x"
        )
    print(f"The plain loop would take {plain_total:.0f} s for all of it: {plain_total / total:.0f} times as long.")


if __name__ == "__main__":
    main()
