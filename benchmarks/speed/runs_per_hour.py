"""How to get the most steps per second out of a machine: TD3 in HalfCheetah-v5, in one process or one per core.

    python -m benchmarks.speed.runs_per_hour [--rounds 5]

Measured in turn are (a) one process that has all cores, so that runs come one after the other, (b) a process for each
core, with one thread and pinned to it, all at the same time, and (c) one process that updates several seeds in one
program, as many as there are cores: their products batched, or side by side for XLA to schedule. Printed are the steps
per second of all runs together. (c) does not act, so it is an upper bound.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain

from benchmarks.speed.off_policy import CASES, Side, rate, start

CASE = CASES["TD3"]
CORES = sorted(os.sched_getaffinity(0))


def start_all(case):
    """Title -> the processes of each way to train."""
    all_cores, one_thread = (Side("ours", case.rounds[0], threads) for threads in (None, 1))
    together = f"(c) {len(CORES)} seeds in one program"
    more = {"measure": "updates_together", "seeds": len(CORES), "warm_up": [100]}
    return {
        f"(a) one process, {len(CORES)} cores": [start(case, all_cores)],
        f"(b) {len(CORES)} processes of one core each": [start(case, one_thread, core=core) for core in CORES],
        f"{together}, batched": [start(case, all_cores, batched=True, **more)],
        f"{together}, side by side": [start(case, all_cores, batched=False, **more)],
    }


def measure(case, rounds):
    """Medians of the steps per second of each way, summed over its processes."""
    with ExitStack() as stack, ThreadPoolExecutor(len(CORES)) as pool:
        processes = {way: [stack.enter_context(process) for process in some] for way, some in start_all(case).items()}
        for process in chain.from_iterable(processes.values()):
            process.read_line()
        turns = [
            {way: sum(pool.map(lambda process: rate(process, case), some)) for way, some in processes.items()}
            for _ in range(1 + rounds)
        ]
    return {way: statistics.median(turn[way] for turn in turns[1:]) for way in processes}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    options = parser.parse_args(arguments)
    rates = measure(CASE, options.rounds)
    print(f"TD3 in {CASE.env}, steps per second of all runs together; medians of {options.rounds} rounds")
    first = next(iter(rates.values()))
    for way, steps in rates.items():
        print(f"{way:<45}{steps:>10,.0f}{steps / first:>8.2f} times (a)")


if __name__ == "__main__":
    main()
