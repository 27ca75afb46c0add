"""What TD3's memory costs in HalfCheetah: bytes of a million transitions, and how long a batch takes to sample.

    python benchmarks/replay.py [--rounds 5]

The time of sampling is that of a full memory, for the 50 batches of a round of updates at once, beside the time of an
update. The latter is what a round of 100 updates takes longer than one of 50, for each of the additional 50.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack

import numpy as np
from off_policy_speed import CASES, Side, rate, started

CASE = CASES["TD3"]
CAPACITY = 1_000_000
WIDTH = 17 + 6 + 1 + 17 + 1  # Observation, action, reward, next observation, and whether it ended there.
UPDATES, BATCH = 50, 256
MOST_BYTES = 300e6
MOST_OF_AN_UPDATE = 0.05


def full_memory(generator):
    """A memory with no room left."""
    from steadyrl.memory import Memory

    memory = Memory(WIDTH, CAPACITY)
    for row in generator.standard_normal((CAPACITY, WIDTH), dtype=np.float32):
        memory.add(row)
    return memory


def sampling(memory, generator, rounds):
    """Seconds of sampling one batch."""
    seconds = []
    for _ in range(1 + rounds):
        start = time.perf_counter()
        memory.sample(generator, UPDATES, BATCH)
        seconds.append((time.perf_counter() - start) / UPDATES)
    return statistics.median(seconds[1:])


def updating(rounds):
    """Seconds of an update of TD3, with its sampling."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(started(CASE, Side("ours", (UPDATES, updates), None)))
            for updates in (UPDATES, 2 * UPDATES)
        ]
        for process in processes:
            process.answer()
        turns = [[1 / rate(process, CASE) for process in processes] for _ in range(1 + rounds)]
    once, twice = np.median(turns[1:], axis=0)
    return float(twice - once)  # With one update for each step, and with two.


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    memory = full_memory(generator)
    sample, update = sampling(memory, generator, 10 * options.rounds), updating(options.rounds)
    share = sample / update
    print(
        f"memory of {CAPACITY:,} transitions of {CASE.env}: {memory.nbytes / 1e6:.0f} MB; "
        f"target below {MOST_BYTES / 1e6:.0f} MB: {_met(memory.nbytes < MOST_BYTES)}"
    )
    print(
        f"sampling {BATCH} of them: {1e6 * sample:.1f} us, {share:.1%} of an update's {1e6 * update:.0f} us; "
        f"target below {MOST_OF_AN_UPDATE:.0%}: {_met(share < MOST_OF_AN_UPDATE)}"
    )


def _met(is_met):
    return "met" if is_met else "missed"


if __name__ == "__main__":
    main()
