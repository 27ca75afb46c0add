"""How fast DQN and TD3 train, acting and updating, beside Stable-Baselines3's and SBX's.

    python -m benchmarks.speed.off_policy [--only CASE ...] [--rounds 5] [--no-peers]

- TD3 in HalfCheetah-v5: one update of batches of 256 for each step, networks of 256x256. Ours updates 50 times after
  every 50 steps; theirs do so too and, as by default, once after every step, and the better counts.
- DQN in LunarLander-v3: batches of 64, networks of 128x128, after every 4 steps 4 updates, or, as by default, 1.

Each is a process of its own (`peers/turns.py`), and the peers have one for each number of threads, 1 and all cores, of
which the better counts. They take turns of so many steps, one after the other, after a warm-up in which they have
begun to learn and compiled. For TD3 the products of its updates alone take a turn too, on all cores at once, each with
its part of every batch: a limit for anyone who multiplies as fast as NumPy. Peers are installed in `.venv-peers` when
they are not there yet (see `peers/environment.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.learning.compare import Family
from benchmarks.peers import environment
from benchmarks.speed.table import Row

CORES = len(os.sched_getaffinity(0))
TITLES = {"ours": "steadyrl", "sbx": "SBX", "sb3": "Stable-Baselines3"}
LIMIT = "limit: matrix products alone, shared by pinned processes"
FAMILY = Family.load("off_policy")


@dataclass(frozen=True)
class Case:
    """What is measured."""

    env: str
    """Its algorithm and settings are those of `learning/off_policy.toml`, except for `settings`."""
    settings: dict[str, Any]
    rounds: list[tuple[int, int]]
    """Steps between rounds of updates, and updates in such a round: the first for everyone, the rest for peers too."""
    steps: int
    """Of a turn: about a few seconds."""
    targets: dict[str, float]
    """How many times as fast as this peer ours should be."""


DQN = {
    "learning_rate": 7e-4,
    "batch_size": 64,
    "hidden": [128, 128],
    "exploration_initial_eps": 0.1,  # As at the end: random actions cost nothing.
}
CASES = {
    "TD3": Case("HalfCheetah-v5", {}, [(50, 50), (1, 1)], 1_000, {"sbx": 1.5, "sb3": 2.5}),
    "DQN": Case("LunarLander-v3", DQN, [(4, 4)], 2_000, {"sbx": 3}),
    "DQN, 1 update": Case("LunarLander-v3", DQN, [(4, 1)], 4_000, {"sbx": 3}),
}


class Side(NamedTuple):
    """Who takes part in a case, and how."""

    library: str
    round: tuple[int, int]
    threads: int | None

    def __str__(self) -> str:
        threads = f"{self.threads} thread(s)" if self.threads else "all cores"
        return f"{TITLES[self.library]} ({self.round[1]} updates / {self.round[0]} steps, {threads})"


def sides(case, peers=("sbx", "sb3")):
    """Ours as it is, and the peers with everything that may suit them."""
    yield Side("ours", case.rounds[0], None)
    for library in peers:
        yield from (Side(library, some, threads) for some in case.rounds for threads in sorted({1, CORES}))


def description(case, side, **more):
    """Of a process of `peers/turns.py`; by default it measures training."""
    run = FAMILY.description(case.env, side.library, seed=0, threads=side.threads)
    train_freq, gradient_steps = side.round
    run["settings"] |= case.settings | {"train_freq": train_freq, "gradient_steps": gradient_steps}
    warm_up = [run["settings"]["learning_starts"] + case.steps]
    return {"measure": "training", "warm_up": warm_up, **run, **more}


def start(case, side, **more):
    """The process of a side of a case, which prints a line when it is ready."""
    python = sys.executable if side.library == "ours" else environment.PYTHON
    run = description(case, side, **more)
    return environment.start("benchmarks.peers.turns", json.dumps(run), python=python, threads=side.threads)


def start_limit(case, core):
    """The process of one core's part of the products."""
    more = {"measure": "td3_products", "warm_up": [10], "core": core, "cores": CORES}
    return start(case, Side("ours", case.rounds[0], 1), **more)


def rate(process, case):
    """Steps per second of a turn."""
    return json.loads(process.ask(str(case.steps)))


def measure(case, rounds, peers=("sbx", "sb3"), all_rounds=True):
    """Medians of each side's steps per second; without `all_rounds` only of the best of each library, after a trial."""
    with ExitStack() as stack:
        processes = {side: stack.enter_context(start(case, side)) for side in sides(case, peers)}
        for process in processes.values():
            process.read_line()
        cores = sorted(os.sched_getaffinity(0)) if case.env == "HalfCheetah-v5" else []
        limits = [stack.enter_context(start_limit(case, core)) for core in cores]
        for process in limits:
            process.read_line()
        turns = []
        with ThreadPoolExecutor(CORES) as pool:
            for _ in range(1 + rounds):
                turns.append({side: rate(process, case) for side, process in processes.items()})
                if limits:
                    turns[-1][LIMIT] = min(pool.map(lambda process: rate(process, case), limits))
                if not all_rounds and len(turns) == 1:
                    best = {side.library: side for side in sorted(processes, key=turns[0].get)}
                    processes = {side: processes[side] for side in best.values()}
    return {side: statistics.median(turn[side] for turn in turns[1:]) for side in turns[-1]}


def report(case, rates):
    """The table, and its ratios."""
    rates = dict(rates)
    limit = rates.pop(LIMIT, None)
    ours = next(rate for side, rate in rates.items() if side.library == "ours")
    lines = [f"{'':<65}{'steps/s':>10}", *(f"{side!s:<65}{rate:>10,.0f}" for side, rate in rates.items()), ""]
    for library in dict.fromkeys(side.library for side in rates if side.library != "ours"):
        best = max((side for side in rates if side.library == library), key=rates.get)
        ratio, target = ours / rates[best], case.targets.get(library)
        verdict = f"; target at least {target}: {'met' if ratio >= target else 'missed'}" if target else ""
        lines.append(f"ours / {best}: {ratio:.2f} times the steps per second{verdict}")
    if limit:
        lines.append(f"{LIMIT}: {limit:,.0f} updates/s, {limit / ours:.2f} times ours")
    return "\n".join(lines)


def rows(peers: bool = True, rounds: int = 2, steps: int = 300) -> Iterator[Row]:
    """For the table of all benchmarks: the peers on all cores or one, with our rounds of updates, the faster ones."""
    for name in ("TD3", "DQN"):
        case = CASES[name]
        settings = case.settings | {"learning_starts": 1_000}
        case = dataclasses.replace(
            case, settings=settings, rounds=case.rounds[:1], steps=steps if name == "TD3" else 2 * steps
        )
        rates = measure(case, rounds, ("sbx", "sb3") if peers else (), all_rounds=False)
        limit = rates.pop(LIMIT, None)
        best: dict[str, float] = {}
        for side, rate_ in rates.items():
            best[side.library] = max(rate_, best.get(side.library, 0.0))
        ours = best.pop("ours")
        others = {TITLES[library]: rate_ for library, rate_ in best.items()}
        note = "" if limit is None else "matrix products alone, in NumPy"
        yield Row(f"{name} in {case.env}", "steps/s", ours, others, limit, note=note)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="+", default=list(CASES), help="these cases")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--no-peers", action="store_true", help="ours and the limit alone")
    options = parser.parse_args(arguments)
    peers = () if options.no_peers else ("sbx", "sb3")
    if peers:
        environment.install()
    print(
        f"DQN and TD3 on {CORES} cores; medians of {options.rounds} rounds after 1 to warm up. "
        f"Load average at the start: {os.getloadavg()[0]:.1f}."
    )
    for name in options.only:
        case = CASES[name]
        print(f"\n{name} in {case.env}", flush=True)
        print(report(case, measure(case, options.rounds, peers)), flush=True)


if __name__ == "__main__":
    main()
