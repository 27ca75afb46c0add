"""How long a training takes to start: to the end of its first update, with a full compilation cache and an empty one.

    python -m benchmarks.speed.start [--rounds 3]

Each is `steadyrl train CartPole-v1 --agent ppo` for one update, from the start of its process to its end: with an empty
cache, and again with what that has stored in it. Also `steadyrl --help`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.speed.table import Row

TRAIN = ("train", "CartPole-v1", "--agent", "ppo", "--episodes", "8", "--no-progress")


def seconds(cache, *arguments):
    """Of a command with a compilation cache in a folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    start = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-m", "steadyrl", *map(str, arguments)]
    subprocess.run(command, env=inherited | {"XDG_CACHE_HOME": str(cache)}, check=True, capture_output=True)
    return time.perf_counter() - start


def measure(rounds):
    """Medians of the seconds with an empty cache, with a full one, and of --help."""
    turns = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            runs = [seconds(folder / "cache", *TRAIN, "--out", folder / name) for name in ("first", "second")]
            turns.append((*runs, seconds(folder / "cache", "--help")))
    return [statistics.median(turn) for turn in zip(*turns, strict=True)]


def rows(peers: bool = True, rounds: int = 1) -> Iterator[Row]:
    """For the table of all benchmarks."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import steadyrl.cli.train"], check=True
    )  # Files are read once.
    first, second, _ = measure(rounds)
    yield Row("start of a training and one update, full compilation cache", "s", second, {"empty cache": first})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    options = parser.parse_args(arguments)
    first, second, help_ = measure(options.rounds)
    print(f"empty cache {first:.2f} s, full cache {second:.2f} s, --help {help_:.2f} s")


if __name__ == "__main__":
    main()
