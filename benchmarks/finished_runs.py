"""Finished runs per hour on this machine: `steadyrl sweep` beside other ways to do the same runs.

    python benchmarks/finished_runs.py [--runs 8] [--episodes 1500] [--only WAY ...]

Each way trains MG in CartPole-v1 with the seeds 0, 1, ..., from the start of its first process to the end of its last:

- sweep: a process for each core, pinned, one thread each, with a cache of compiled programs that is empty at first;
- sweep again: the same with the cache that the first has filled;
- ray: the same on a Ray cluster of this machine alone, which is started and stopped for it;
- one by one: `steadyrl train` for each seed, with all cores;
- side by side: as many of these at a time as there are cores, each with all cores.

It is checked that sweep, sweep again and ray leave the same bits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CORES = len(os.sched_getaffinity(0))
WAYS = ("sweep", "sweep again", "ray", "one by one", "side by side")


def steadyrl(cache, *arguments):
    """Run a command to its end."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-W", "ignore", "-m", "steadyrl", *map(str, arguments)]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def do(way, folder, options):
    """The runs, done in one of the ways."""
    episodes = ("--episodes", options.episodes)
    if way in ("sweep", "sweep again", "ray"):
        where = ("--on", "ray") if way == "ray" else ()
        out = ("--out", folder / way.replace(" ", "-"))
        steadyrl(folder / "cache", "sweep", "CartPole-v1", "--seeds", options.runs, *episodes, *out, *where)
        return

    def train(seed):
        out = ("--out", folder / way.replace(" ", "-") / str(seed))
        steadyrl(folder / "none", "train", "CartPole-v1", "--seed", seed, *episodes, *out, "--no-progress")

    with ThreadPoolExecutor(CORES if way == "side by side" else 1) as pool:
        list(pool.map(train, range(options.runs)))


def parameters(folder):
    """What the runs of a sweep came to."""
    return [path.read_bytes() for path in sorted(folder.rglob("checkpoint.steady"))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="how many")
    parser.add_argument("--episodes", type=int, default=1500, help="of each run")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS, help="these ways; the first is always done")
    options = parser.parse_args()
    print(f"{options.runs} runs of {options.episodes} episodes on {CORES} cores, load {os.getloadavg()[0]:.1f}")
    rates = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for way in WAYS:
            if way != "sweep" and way not in options.only:
                continue
            start = time.perf_counter()
            do(way, folder, options)
            rates[way] = options.runs / (time.perf_counter() - start) * 3600
            print(
                f"{way:<15}{rates[way]:>10,.0f} runs/hour{rates['sweep'] / rates[way]:>8.2f} sweep / this", flush=True
            )
        for way in ("sweep again", "ray"):
            if way in rates:
                same = parameters(folder / "sweep") == parameters(folder / way.replace(" ", "-"))
                print(f"{way}: {'the same' if same else 'OTHER'} bits as sweep")


if __name__ == "__main__":
    main()
