"""How long updates take from padded batches and from packed ones, whose episodes differ in length.

    python -m benchmarks.speed.packing [--rounds 10] [--only AGENT ...]

A batch is as LunarLander gives it late in training: 16 episodes of about 250 steps and one of 1,000. Both forms are
measured in turn, after both were compiled. What is learned is noise: the time of an update does not depend on it,
except for how soon a batch is dropped, which is turned off.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence

import gymnasium as gym
import jax
import numpy as np

import steadyrl
from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.engines import host

EPISODES, INPUTS, ACTIONS = 16, 8, 4
PAPER = {"hidden": (128, 128), "episodes_per_update": EPISODES, "inner_updates": 10, "risk_aversion": 0.6}
ALL = {**PAPER, "mean": "vpg", "ratio_range": 1e9, "least_selected": 0.0}
PPO = {**PAPER, "mean": "ppo", "target_kl": 0.0}
AGENTS = {
    "MG-VPG, credit by trajectory": {**ALL, "credit": "trajectory"},
    "MG-VPG, credit by step": {**ALL, "credit": "step"},
    "MG-PPO, whole batches": {**PPO, "credit": "trajectory", "minibatch_size": 0},
    "MG-PPO, minibatches of 64": {**PPO, "credit": "trajectory", "minibatch_size": 64},
    "MG-PPO, minibatches, credit by step": {**PPO, "credit": "step", "minibatch_size": 64},
}


class Lander(gym.Env):
    """The spaces of LunarLander."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (INPUTS,))
    action_space = gym.spaces.Discrete(ACTIONS)


def lengths_of_a_batch() -> np.ndarray:
    """Around 250 steps, and one episode that hovers until the time limit."""
    lengths = np.random.default_rng(0).normal(250, 40, size=EPISODES).astype(int)
    lengths[5] = 1000
    return lengths


def padded_batch(lengths: np.ndarray, gamma: float) -> EpisodeBatch:
    """Noise in episodes of these lengths."""
    rng, shape = np.random.default_rng(1), (len(lengths), lengths.max())
    mask = (np.arange(shape[1]) < lengths[:, None]).astype(float)
    episodes = Episodes(
        observations=rng.normal(size=(*shape, INPUTS)).astype(np.float32),
        actions=rng.integers(ACTIONS, size=shape),
        rewards=rng.normal(size=shape) * mask,
        mask=mask,
        last_observations=rng.normal(size=(len(lengths), INPUTS)).astype(np.float32),
        terminated=np.ones(len(lengths), bool),
        episode_metrics={},
    )
    return EpisodeBatch.of(episodes, gamma, lambda x: x)


def measure(settings: dict, lengths: np.ndarray, rounds: int) -> dict[str, dict[str, float]]:
    """Form -> steps with padding, median seconds of an update, and seconds to compile."""
    agent = steadyrl.MeanGini(Lander(), **settings)
    padded = padded_batch(lengths, agent.gamma)
    forms = {"padded": padded, "packed": padded.packed()}

    def seconds(batch):
        start = time.perf_counter()
        jax.block_until_ready(host._update(agent.algorithm, agent.learner, batch))
        return time.perf_counter() - start

    first = {name: seconds(batch) for name, batch in forms.items()}
    turns = [{name: seconds(batch) for name, batch in forms.items()} for _ in range(rounds)]
    return {
        name: {
            "steps": batch.mask.size,
            "seconds": statistics.median(turn[name] for turn in turns),
            "compiling": first[name],
        }
        for name, batch in forms.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="how often each is measured")
    parser.add_argument("--only", choices=AGENTS, nargs="+", default=list(AGENTS), help="these agents")
    options = parser.parse_args(arguments)
    lengths = lengths_of_a_batch()
    print(
        f"{EPISODES} episodes, {lengths.sum():,} steps, the longest has {lengths.max():,}; medians of "
        f"{options.rounds} rounds. Load average at the start: {os.getloadavg()[0]:.1f}.\n"
        f"{'':<38}{'with padding':>22}{'seconds':>18}{'ratio':>8}",
        flush=True,
    )
    for name in options.only:
        padded, packed = measure(AGENTS[name], lengths, options.rounds).values()
        print(
            f"{name:<38}{padded['steps']:>12,} {packed['steps']:>9,}{padded['seconds']:>10.3f}"
            f"{packed['seconds']:>8.3f}{padded['seconds'] / packed['seconds']:>8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
