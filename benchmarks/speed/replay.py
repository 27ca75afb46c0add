"""What TD3's replay buffer costs in HalfCheetah: bytes of a million transitions, and the time to sample a batch.

    python -m benchmarks.speed.replay [--rounds 5]

The time of sampling is that of a full replay buffer, for the 50 batches of a round of updates at once, beside the time
of an update. The latter is how much longer a round of 100 updates takes than one of 50, for each of the additional 50.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from benchmarks.speed.off_policy import CASES, Side, rate, start

CASE = CASES["TD3"]
CAPACITY = 1_000_000
INPUTS, OUTPUTS = 17, 6
UPDATES, BATCH = 50, 256
MAX_BYTES = 300e6
MAX_PART_OF_UPDATE = 0.05


def full_buffer(generator, capacity):
    """A replay buffer with no room left."""
    from steadyrl.training.replay_buffer import ReplayBuffer, TransitionLayout

    replay_buffer = ReplayBuffer(TransitionLayout(INPUTS, OUTPUTS).width, capacity)
    for row in generator.standard_normal((capacity, replay_buffer.shape_after(0)[1]), dtype=np.float32):
        replay_buffer.add(row)
    return replay_buffer


def sampling_seconds(replay_buffer, generator, rounds):
    """Of one batch."""
    seconds = []
    for _ in range(1 + rounds):
        start = time.perf_counter()
        replay_buffer.sample(generator, UPDATES, BATCH)
        seconds.append((time.perf_counter() - start) / UPDATES)
    return statistics.median(seconds[1:])


def update_seconds(case, rounds):
    """Of an update of TD3, with its sampling."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(start(case, Side("ours", (UPDATES, updates), None)))
            for updates in (UPDATES, 2 * UPDATES)
        ]
        for process in processes:
            process.read_line()
        turns = [[1 / rate(process, case) for process in processes] for _ in range(1 + rounds)]
    once, twice = np.median(turns[1:], axis=0)
    return float(twice - once)  # With one update for each step, and with two.


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    options = parser.parse_args(arguments)
    generator = np.random.default_rng(0)
    replay_buffer = full_buffer(generator, CAPACITY)
    print(
        report(
            replay_buffer,
            sampling_seconds(replay_buffer, generator, 10 * options.rounds),
            update_seconds(CASE, options.rounds),
        )
    )


def report(replay_buffer, sample, update):
    """Its size, and the seconds of sampling a batch beside those of an update."""
    part = sample / update
    return (
        f"replay buffer of {len(replay_buffer):,} transitions of {CASE.env}: {replay_buffer.nbytes / 1e6:.0f} MB; "
        f"target below {MAX_BYTES / 1e6:.0f} MB: {_met(replay_buffer.nbytes < MAX_BYTES)}\n"
        f"sampling {BATCH} of them: {1e6 * sample:.1f} us, {part:.1%} of an update's {1e6 * update:.0f} us; "
        f"target below {MAX_PART_OF_UPDATE:.0%}: {_met(part < MAX_PART_OF_UPDATE)}"
    )


def _met(is_met):
    return "met" if is_met else "missed"


if __name__ == "__main__":
    main()
