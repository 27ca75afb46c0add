"""Finished runs per hour on this machine: `steadyrl sweep` beside other ways to do the same runs.

    python -m benchmarks.speed.finished_runs [--runs 8] [--episodes 1500] [--only WAY ...]

Each way trains MG in CartPole-v1 with the seeds 0, 1, ..., from the start of its first process to the end of its last:

- sweep: a process for each core, pinned, one thread each, with a compilation cache that is empty at first;
- sweep again: the same with the cache that the first has filled;
- ray: the same on a Ray cluster of this machine alone, which is started and stopped for it;
- one by one: `steadyrl train` for each seed, with all cores, and with a compilation cache that is empty at first;
- side by side: as many of these at a time as there are cores, each with all cores.

It is checked that sweep, sweep again and ray end with the same bits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CORES = len(os.sched_getaffinity(0))
WAYS = ("sweep", "sweep again", "ray", "one by one", "side by side")


def steadyrl(cache, *arguments):
    """Run a command to its end, with a compilation cache in a folder of its own."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-W", "ignore", "-m", "steadyrl", *map(str, arguments)]
    subprocess.run(command, env=inherited | {"XDG_CACHE_HOME": str(cache)}, check=True, capture_output=True)


def train_all(way, folder, runs, episodes):
    """The runs, done in one of the ways."""
    budget, out = ("--episodes", episodes), folder / way.replace(" ", "-")
    if way in ("sweep", "sweep again", "ray"):
        where = ("--on", "ray") if way == "ray" else ()
        steadyrl(folder / "cache", "sweep", "CartPole-v1", "--seeds", runs, *budget, "--out", out, *where)
        return

    def train(seed):
        one = ("--seed", seed, *budget, "--out", out / str(seed), "--no-progress")
        steadyrl(folder / f"cache of {way}", "train", "CartPole-v1", *one)

    with ThreadPoolExecutor(CORES if way == "side by side" else 1) as pool:
        list(pool.map(train, range(runs)))


def checkpoints(folder):
    """The bytes of the agents that the runs of a sweep ended with."""
    return [path.read_bytes() for path in sorted(folder.rglob("checkpoint.steady"))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="how many")
    parser.add_argument("--episodes", type=int, default=1500, help="of each run")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS, help="these ways; the first is always done")
    options = parser.parse_args(arguments)
    print(f"{options.runs} runs of {options.episodes} episodes on {CORES} cores, load {os.getloadavg()[0]:.1f}")
    rates = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for way in WAYS:
            if way != "sweep" and way not in options.only:
                continue
            start = time.perf_counter()
            train_all(way, folder, options.runs, options.episodes)
            rates[way] = options.runs / (time.perf_counter() - start) * 3600
            ratio = rates["sweep"] / rates[way]
            print(f"{way:<15}{rates[way]:>10,.0f} runs/hour{ratio:>8.2f} sweep / this", flush=True)
        for way in ("sweep again", "ray"):
            if way in rates:
                same = checkpoints(folder / "sweep") == checkpoints(folder / way.replace(" ", "-"))
                print(f"{way}: {'the same' if same else 'OTHER'} bits as sweep")


if __name__ == "__main__":
    main()
