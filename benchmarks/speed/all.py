"""All speed benchmarks, once each, in at most 15 minutes: one table, and the page docs/benchmarks.md.

    python -m benchmarks.speed.all [--minutes 15] [--only PART ...] [--no-peers] [--page]

`make bench` runs this. Results are kept in docs/results/benchmarks.json, so that a part can be measured again alone;
`--page` only writes the page from them. The peers are installed once, in environments of their own. A part that would
not end in time is left out, which is said; a machine that is busy gets a warning, because every number would be too
small. `many_seeds` takes 15 minutes alone, so it is measured on request only: `--only many_seeds --minutes 20`.

A part is a module of this folder with a function `rows(peers)`, which yields rows (`table.py`); `worlds` and
`many_seeds` are both `worlds.py`, with one seed and with 16.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import environment, rejax_environment
from benchmarks.speed import page, scaling
from benchmarks.speed.table import Row, as_text

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "benchmarks.json"
BUSY = 0.5
"""A load average above which a machine counts as busy."""


class Part(NamedTuple):
    """A benchmark, and how long it takes about, in seconds, with peers and without."""

    module: str
    seconds: int
    alone: int


PARTS = (
    Part("maze", 20, 20),
    Part("start", 20, 20),
    Part("workers", 30, 30),
    Part("ppo", 140, 40),
    Part("collect", 110, 60),
    Part("worlds", 170, 60),
    Part("off_policy", 280, 60),
    Part("scaling", 110, 110),
)
ON_REQUEST = (Part("many_seeds", 900, 400),)
SEEDS = {"worlds": 1, "many_seeds": 16}
"""The parts that are `worlds.py`, and for how many seeds."""


def rows_of(part: str, peers: bool) -> Iterator[Row]:
    """The rows of a part."""
    if part in SEEDS:
        yield from worlds_rows(peers, SEEDS[part])
        return
    yield from importlib.import_module(f"benchmarks.speed.{part}").rows(peers)


def worlds_rows(peers: bool, seeds: int) -> Iterator[Row]:
    """Environments in JAX: seconds a seed until a threshold is reached, compilation included and apart."""
    worlds: Any = importlib.import_module("benchmarks.speed.worlds")
    learners = list(worlds.NAMES) if peers else ["ours"]
    for task in worlds.TASKS:
        found = list(worlds.rows([task], learners, [seeds]))
        for key, words in (("seconds_per_seed", ""), ("compiled_per_seed", ", compiled before")):
            (ours,) = (row[key] for row in found if row["learner"] == "ours")
            others = {worlds.name(row): row[key] for row in found if row["learner"] != "ours"}
            many = f"{seeds} seed{'s' * (seeds > 1)}"
            yield Row(f"PPO solves gymnax {task}, {many}, a seed{words}", "s", ours, others)


def available(part: str) -> bool:
    """Whether its script is here."""
    return part in ("scaling", *SEEDS) or importlib.util.find_spec(f"benchmarks.speed.{part}") is not None


def read() -> dict[str, Any]:
    """What is kept: rows by part, series of `scaling`, and the machine."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}, "scaling": [], "machine": {}}


def keep(results: dict[str, Any]) -> None:
    """Write what was measured so far."""
    results["machine"] = page.machine()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def measure(part: str, peers: bool, results: dict[str, Any]) -> None:
    """Measure a part, and put what it returns into the results."""
    load, today = os.getloadavg()[0], datetime.date.today().isoformat()
    if part == "scaling":
        results |= {"scaling": [], "scaling_load": load, "scaling_measured": today}
        for series in scaling.measure():
            results["scaling"].append(series._asdict())
            keep(results)
        return
    command = f"python -m benchmarks.speed.{'worlds' if part in SEEDS else part}"
    kept = [dataclasses.replace(row, load=load, measured=today, command=command) for row in rows_of(part, peers)]
    results["rows"][part] = [dataclasses.asdict(row) for row in kept]


def run(parts: Sequence[Part], peers: bool, minutes: float, results: dict[str, Any]) -> list[str]:
    """Measure and keep parts until the time is up; returns those that were left out, with the reason."""
    start, left_out = time.monotonic(), []
    for part in parts:
        expected = part.seconds if peers else part.alone
        if time.monotonic() - start + expected > 60 * minutes:
            left_out.append(f"{part.module}: it takes about {expected} s, and the {minutes:g} minutes would be over.")
            continue
        print(f"{part.module} (about {expected} s) ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            measure(part.module, peers, results)
            keep(results)
        except Exception as error:  # The others are measured nevertheless.
            left_out.append(f"{part.module}: {type(error).__name__}: {error}")
        print(f"{part.module}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return left_out


def all_rows(results: dict[str, Any]) -> list[Row]:
    """In the order of the parts."""
    order = [part.module for part in (*PARTS, *ON_REQUEST)]
    return [Row(**row) for part in order for row in results["rows"].get(part, [])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the page."""
    by_default, known = ([part.module for part in parts] for parts in (PARTS, (*PARTS, *ON_REQUEST)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15, help="at most so long, without installing peers")
    parser.add_argument("--only", nargs="+", choices=known, default=by_default, help="these parts")
    parser.add_argument("--no-peers", action="store_true", help="ours and limits alone")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured before")
    options = parser.parse_args(arguments)
    results, left_out, load = read(), list[str](), os.getloadavg()[0]
    if not options.page:
        print(f"Load average at the start: {load:.1f} on {scaling.CORES} cores.")
        if load > BUSY:
            print("Warning: this machine is busy, so all numbers will be too small, and unequally so.", file=sys.stderr)
        if not options.no_peers:
            environment.install()
            rejax_environment.install()
        parts = [part for part in (*PARTS, *ON_REQUEST) if part.module in options.only and available(part.module)]
        left_out = run(parts, not options.no_peers, options.minutes, results)
    rows = all_rows(results)
    print(as_text(rows))
    for reason in left_out:
        print(f"Not measured: {reason}")
    page.write(rows, [scaling.Series(**series) for series in results["scaling"]], results)


if __name__ == "__main__":
    main()
