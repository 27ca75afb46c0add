"""How to get the most finished runs an hour out of a machine: TD3 in HalfCheetah-v5, in one process or one per core.

    python benchmarks/runs_per_hour.py [--rounds 5]

Measured in turn are (a) one process that has all cores, so that runs come one after the other, and (b) a process for
each core, with one thread and pinned to it, all at the same time. Printed are the steps per second, in (b) the sum over
the processes, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from off_policy_speed import CASES, Side, rate, started

CASE = CASES["TD3"]
CORES = sorted(os.sched_getaffinity(0))


def measure(rounds):
    """Medians of the steps per second of (a) and of the sum over the processes of (b)."""
    with ExitStack() as stack, ThreadPoolExecutor(len(CORES)) as pool:
        one = stack.enter_context(started(CASE, Side("ours", CASE.rounds[0], None)))
        pinned = [stack.enter_context(started(CASE, Side("ours", CASE.rounds[0], 1), core=core)) for core in CORES]
        for process in (one, *pinned):
            process.answer()
        turns = [
            (rate(one, CASE), sum(pool.map(lambda process: rate(process, CASE), pinned))) for _ in range(1 + rounds)
        ]
    return map(statistics.median, zip(*turns[1:], strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    options = parser.parse_args()
    one, several = measure(options.rounds)
    print(f"TD3 in {CASE.env}, steps per second; medians of {options.rounds} rounds")
    print(f"{f'(a) one process, {len(CORES)} cores':<40}{one:>10,.0f}")
    print(f"{f'(b) {len(CORES)} processes of one core each, sum':<40}{several:>10,.0f}")
    print(f"(b) / (a): {several / one:.2f}")


if __name__ == "__main__":
    main()
