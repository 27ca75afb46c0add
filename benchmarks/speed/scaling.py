"""Cost as it grows: time against episodes a batch, seeds, network width, workers and length of episodes.

    python -m benchmarks.speed.scaling [--quick] [--only PART ...] [--figure docs/benchmarks_scaling.png]

- eta: the Gini weights of n returns, in a compiled program. They take a sort, n log n.
- batch: a round of MG-PPO with n episodes of 100 steps: playing them, and updating (4 passes).
- length: the same with 20 episodes of so many steps.
- width: the same with two hidden layers of that width.
- seeds: MG in the maze for so many seeds together in one program, 5 at a time.
- workers: steps per second with so many processes in an environment of 1 ms a step.

Rounds are played in an environment that costs nothing, and are measured after one that compiles. Compiling is not
included. Prints each series, and draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np

from benchmarks.speed import workers
from benchmarks.speed.table import number

CORES = len(os.sched_getaffinity(0))
ROUNDS = 3
ROUND = {"episodes": 20, "length": 100, "width": 128}
"""Of the rounds that are measured, except for what grows."""
FIGURE = Path(__file__).parents[2] / "docs" / "benchmarks_scaling.png"


class Series(NamedTuple):
    """What was measured at each size."""

    part: str
    title: str
    sizes_of: str
    """What grows."""
    unit: str
    sizes: list[int]
    values: dict[str, list[float]]
    """Name of a curve -> its values."""


class Free(gym.Env):
    """An environment of `length` steps that does next to nothing."""

    observation_space = gym.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, length):
        self._length = length

    def reset(self, *, seed=None, options=None):
        """See `gymnasium.Env`."""
        super().reset(seed=seed)
        self._observations = self.np_random.uniform(-1, 1, (16, 8)).astype(np.float32)
        self._t = 0
        return self._observations[0], {}

    def step(self, action):
        """See `gymnasium.Env`."""
        self._t += 1
        return self._observations[self._t % 16], float(action), False, self._t == self._length, {}


@cache
def round_seconds(episodes, length, width):
    """Median seconds of playing and of updating, in a round of MG-PPO."""
    import steadyrl
    from steadyrl.training.engines.host import HostEngine

    settings: dict[str, Any] = {"mean": "ppo", "hidden": (width, width), "episodes_per_update": episodes}
    settings |= {"inner_updates": 4, "minibatch_size": 0, "target_kl": 0.0}
    engine = HostEngine(steadyrl.MeanGini(partial(Free, length), seed=0, **settings))
    turns = [engine.advance(1, sys.maxsize)[0][1].work for _ in range(1 + ROUNDS)]
    parts = ("seconds_collecting", "seconds_updating")
    return tuple(statistics.median(float(turn[part][0]) for turn in turns[1:]) for part in parts)


def eta_seconds(n):
    """Of the Gini weights of n returns."""
    from steadyrl.risk import gini_weights

    returns = jax.numpy.asarray(np.random.default_rng(0).normal(size=n), jax.numpy.float32)
    weights = jax.jit(gini_weights)
    weights(returns).block_until_ready()
    times = max(3, min(300, 2_000_000 // n))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(times):
            weights(returns).block_until_ready()
        seconds.append((time.perf_counter() - start) / times)
    return statistics.median(seconds)


def maze_seconds(seeds, episodes=1_000):
    """Of training so many seeds in the maze together, after compiling."""
    import steadyrl

    def train(first):
        agents = [steadyrl.MeanGini("steadyrl/GuardedMaze-v0", seed=first + seed) for seed in range(seeds)]
        start = time.perf_counter()
        steadyrl.learn_together(agents, total_episodes=episodes, progress_bar=False, vmap_width=5)
        return time.perf_counter() - start

    train(0)
    return statistics.median(train(0) for _ in range(ROUNDS))


def _rounds(part: str, title: str, sizes_of: str, argument: str, sizes: Sequence[int]) -> Series:
    pairs = [round_seconds(**ROUND | {argument: size}) for size in sizes]
    values = {name: [pair[k] for pair in pairs] for k, name in enumerate(("playing", "updating"))}
    return Series(part, title, sizes_of, "s", list(sizes), values)


def eta(quick: bool = False) -> Series:
    """See the module."""
    sizes = [100, 1_000] if quick else [10, 100, 1_000, 10_000, 100_000]
    return Series("eta", "Gini weights", "returns", "s", sizes, {"eta": [eta_seconds(n) for n in sizes]})


def batch(quick: bool = False) -> Series:
    """See the module."""
    return _rounds(
        "batch", "A round, by episodes in it", "episodes", "episodes", [4, 8] if quick else [5, 20, 100, 300]
    )


def length(quick: bool = False) -> Series:
    """See the module."""
    sizes = [10, 20] if quick else [30, 100, 300, 1_000]
    return _rounds("length", "A round, by length of episodes", "steps of an episode", "length", sizes)


def width(quick: bool = False) -> Series:
    """See the module."""
    return _rounds(
        "width", "A round, by width of networks", "units a layer", "width", [4, 8] if quick else [32, 128, 256, 512]
    )


def seeds(quick: bool = False) -> Series:
    """See the module."""
    sizes, episodes = ([1, 2], 50) if quick else ([1, 5, 10, 20], 1_000)
    values = [maze_seconds(number, episodes) for number in sizes]
    return Series("seeds", f"{episodes:,} episodes in the maze", "seeds together", "s", sizes, {"all seeds": values})


def workers_series(quick: bool = False) -> Series:
    """See the module."""
    counts = [0, 1] if quick else [0, *sorted({1, 2, CORES, CORES + 1})]
    rates = workers.measure(1.0, counts, 1, 5 if quick else workers.LENGTH)
    return Series(
        "workers", "An environment of 1 ms a step", "workers", "steps/s", counts, {"steps/s": list(rates.values())}
    )


PARTS: dict[str, Callable[[bool], Series]] = {
    "eta": eta,
    "batch": batch,
    "length": length,
    "width": width,
    "seeds": seeds,
    "workers": workers_series,
}


def measure(parts: Sequence[str] = tuple(PARTS), quick: bool = False) -> Iterator[Series]:
    """Each series, as it is measured."""
    for part in parts:
        yield PARTS[part](quick)


def exponent(series: Series, name: str) -> float:
    """The slope of log value over log size, between the last two sizes: 1 for a cost that grows like the size."""
    (a, b), (x, y) = series.sizes[-2:], series.values[name][-2:]
    return float(np.log(y / x) / np.log(b / a))


def as_markdown(every: Sequence[Series]) -> str:
    """A table for each series, and how it grows."""
    parts = []
    for series in every:
        unit, factor = ("ms", 1e3) if series.unit == "s" else (series.unit, 1.0)
        parts.append(f"**{series.title}**, {unit} against {series.sizes_of}:\n")
        lines = [["", *(f"{size:,}" for size in series.sizes), "grows like"]]
        lines.append(["---"] * len(lines[0]))
        for name, values in series.values.items():
            growth = "" if series.part == "workers" else f"size^{exponent(series, name):.2f}"
            lines.append([name, *(number(factor * value) for value in values), growth])
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join(parts)


def draw(every: Sequence[Series], path: Path) -> None:
    """One panel for each series."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 3
    lines = -(-len(every) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(12, 3.6 * lines), squeeze=False, layout="constrained")
    for axis, series in zip(axes.flat, every, strict=False):
        for name, values in series.values.items():
            axis.plot(series.sizes, values, marker="o", label=name)
        if series.part == "workers":
            axis.plot(
                series.sizes[1:],
                [1000 * min(size, CORES) for size in series.sizes[1:]],
                ":",
                color="gray",
                label="limit",
            )
            axis.set_xticks(series.sizes)
            axis.set_ylim(bottom=0)
        else:
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xticks(series.sizes, [f"{size:,}" for size in series.sizes])
            axis.minorticks_off()
            first = next(iter(series.values.values()))
            line = [first[-1] * size / series.sizes[-1] for size in series.sizes]
            axis.plot(series.sizes, line, ":", color="gray", label="in proportion")
        axis.set_title(series.title, fontsize=10)
        axis.set_xlabel(series.sizes_of)
        axis.set_ylabel("seconds" if series.unit == "s" else series.unit)
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(every) :]:
        axis.set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--figure", type=Path, help="where to draw")
    options = parser.parse_args(arguments)
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    done = []
    for series in measure(options.only, options.quick):
        print(json.dumps(series._asdict()), flush=True)
        done.append(series)
    if options.figure:
        draw(done, options.figure)


if __name__ == "__main__":
    main()
