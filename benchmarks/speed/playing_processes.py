"""What PPO in HalfCheetah could gain if each core's own process played its share of the episodes of a batch.

    python -m benchmarks.speed.playing_processes [--rounds 20]

One process with threads for the physics, as it is, takes turns with a process for each core, pinned to it, that plays
its share of the same batch without threads. Both play whole episodes with the same policy. What the processes would
still have to do, pass on parameters and episodes, is left out: this is a bound on the gain, not an implementation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection

from benchmarks.speed import ppo

WARM_UP = 3
EPISODES = ppo.SHAPE["episodes"]


def play_when_asked(pipe: Connection, core: int | None) -> None:
    """In a process of its own: play as many episodes as it is asked for, and answer when they have been played."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    agent = ppo.make_ours().agent
    while True:
        agent.play(pipe.recv(), seed=0)
        pipe.send(True)


def seconds_of(pipes: Sequence[Connection]) -> float:
    """For a batch that is divided among these processes."""
    start = time.perf_counter()
    for k, pipe in enumerate(pipes):
        pipe.send(len(range(k, EPISODES, len(pipes))))
    for pipe in pipes:
        pipe.recv()
    return time.perf_counter() - start


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of playing a batch, by who plays it."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:

        def started(core: int | None) -> Connection:
            ours, theirs = context.Pipe()
            process = context.Process(target=play_when_asked, args=(theirs, core), daemon=True)
            process.start()
            stack.callback(process.terminate)
            return ours

        one, each = [started(None)], [started(core) for core in cores]
        turns = [(seconds_of(one), seconds_of(each)) for _ in range(WARM_UP + rounds)][WARM_UP:]
    names = "one process, threads for the physics", f"{len(cores)} processes of a core each"
    return dict(zip(names, map(statistics.median, zip(*turns, strict=True)), strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="how often each is measured")
    options = parser.parse_args(arguments)
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}.", flush=True)
    for name, seconds in measure(options.rounds).items():
        print(f"{name:<40}{1000 * seconds:>8.0f} ms for {EPISODES} episodes")


if __name__ == "__main__":
    main()
