"""PPO and MG on the images of CarRacing: `python -m benchmarks.learning.race`.

Episodes have 160 frames, of which the agent sees every fourth. Prints the mean return before training and after it,
and seconds of the process (not of the clock, so that other processes count for little).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np

import steadyrl

SETTINGS: dict[str, Any] = {"gamma": 0.95, "inner_updates": 4, "episodes_per_update": 8, "minibatch_size": 64}
EVALUATED = 16


def race() -> gym.Env[Any, Any]:
    """96 x 96 pixels in colour, five actions, 40 of them in an episode."""
    return gym.wrappers.MaxAndSkipObservation(gym.make("CarRacing-v3", continuous=False, max_episode_steps=160), skip=4)


def returns_of(agent: Any) -> Any:
    """Of episodes that are the same before training and after it."""
    return agent.play(EVALUATED, seed=1).rewards.sum(axis=1)


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", default="PPO", choices=["PPO", "MeanGini"])
    parser.add_argument("--episodes", type=int, default=104)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    clock = [time.process_time()]
    agent = getattr(steadyrl, given.agent)(race, seed=given.seed, **SETTINGS)
    report("before", returns_of(agent), agent, clock)
    agent.learn(total_episodes=SETTINGS["episodes_per_update"], progress_bar=False)
    report("first update", returns_of(agent), agent, clock)
    while agent.episodes < given.episodes:
        agent.learn(total_episodes=min(32, given.episodes - agent.episodes), progress_bar=False)
        report("after", returns_of(agent), agent, clock)


def report(title: str, returns: Any, agent: Any, clock: list[float]) -> None:
    """One line."""
    clock.append(time.process_time())
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    seconds = clock[-1] - clock[-2]
    print(
        f"{title}: {agent.episodes} episodes, {agent.timesteps} steps, return {returns.mean():.1f} ± {error:.1f}, "
        f"{seconds:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
