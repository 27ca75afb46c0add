"""What worker processes gain in an environment that is slow in Python: 1 ms of computation a step.

    python -m benchmarks.speed.workers [--rounds 5] [--milliseconds 1] [--workers 1 2]

Each round plays the same batch of 20 episodes of 100 steps in this process, as training does without workers, and in
pools of worker processes that were started before. The limit is the environment alone on as many cores. It is checked
that all play the same episodes, bit for bit.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial

import gymnasium as gym
import jax
import numpy as np

from benchmarks.speed.table import Row

EPISODES, LENGTH = 20, 100
CORES = len(os.sched_getaffinity(0))


class Busy(gym.Env):
    """Computes for so many milliseconds in each of its steps, and ends after `length` of them."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, milliseconds=1.0, length=LENGTH):
        self._seconds, self._length = milliseconds / 1000, length

    def reset(self, *, seed=None, options=None):
        """See `gymnasium.Env`."""
        super().reset(seed=seed)
        self._steps, self._x = 0, self.np_random.normal(size=4)
        return self._x.astype(np.float32), {}

    def step(self, action):
        """See `gymnasium.Env`."""
        end = time.perf_counter() + self._seconds
        self._steps += 1
        self._x = 0.9 * self._x + self.np_random.normal(size=4) + action - 0.5
        while time.perf_counter() < end:
            pass
        return self._x.astype(np.float32), float(self._x[0]), False, self._steps == self._length, {}


def measure(milliseconds, counts, rounds, length=LENGTH):
    """Number of workers, 0 for this process -> median of its steps per second."""
    import steadyrl
    from steadyrl.rollouts.acting import Blocks
    from steadyrl.rollouts.collector import Limits, collect
    from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
    from steadyrl.rollouts.workers import EpisodeWorkers

    make, seeds, limits = partial(Busy, milliseconds, length), list(range(EPISODES)), Limits("Busy", length)
    blocks = Blocks.of(np.arange(EPISODES))
    actor = dataclasses.replace(steadyrl.PPO(make, seed=0).actor(), blocks=blocks)
    simulator, turns = GymnasiumSimulator(make(), make, EPISODES), []
    with ExitStack() as stack:
        pools = {number: stack.enter_context(closing(EpisodeWorkers(number, make))) for number in counts if number}
        for _ in range(1 + rounds):
            turn, played = {}, {}
            for number in counts:
                start = time.perf_counter()
                how = partial(pools[number].collect) if number else partial(collect, simulator)
                played[number] = how(actor, seeds, limits)
                turn[number] = EPISODES * length / (time.perf_counter() - start)
            for episodes in played.values():
                jax.tree.map(np.testing.assert_array_equal, episodes._asdict(), played[counts[0]]._asdict())
            turns.append(turn)
    return {number: statistics.median(turn[number] for turn in turns[1:]) for number in counts}


def rows(peers: bool = True, rounds: int = 3) -> Iterator[Row]:
    """For the table of all benchmarks."""
    rates = measure(1.0, (0, 1, CORES), rounds)
    others = {"no workers": rates[0], "1 worker": rates[1]}
    yield Row(
        f"an environment of 1 ms a step, {CORES} workers",
        "steps/s",
        rates[CORES],
        others,
        CORES * 1000.0,
        note="the environment alone",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--milliseconds", type=float, default=1.0, help="of a step")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, CORES], help="how many; 0 for none")
    parser.add_argument("--length", type=int, default=LENGTH, help="steps of an episode")
    options = parser.parse_args(arguments)
    print(f"{EPISODES} episodes of {options.length} steps of {options.milliseconds} ms, load {os.getloadavg()[0]:.1f}")
    rates = measure(options.milliseconds, options.workers, options.rounds, options.length)
    first = rates[options.workers[0]]
    for number, rate in rates.items():
        print(f"{number:>3} workers{rate:>10,.0f} steps/s{rate / first:>8.2f} times {options.workers[0]}", flush=True)


if __name__ == "__main__":
    main()
