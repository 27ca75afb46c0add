"""All speed benchmarks, once each, in at most 15 minutes: one table, and the page docs/benchmarks.md.

    python -m benchmarks.speed.all [--minutes 15] [--only PART ...] [--no-peers] [--page]

`make bench` runs this. Results are kept in docs/results/benchmarks.json as they are measured, so that a part can be
measured again alone; `--page` only writes the page from them. The peers are installed once, in environments of their
own, which does not count. A part that would not end in time is left out, which is said; a machine that is busy gets a
warning, because every number would be too small.

A part is a module of this folder with a function `rows(peers)`, which yields rows (`table.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import environment, rejax_environment
from benchmarks.speed import page, scaling
from benchmarks.speed.table import Row, as_text

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "benchmarks.json"
BUSY = 0.25
"""How many cores other programs may use on a machine that does not count as busy."""


class Part(NamedTuple):
    """A benchmark, and how long it takes about, in seconds, with peers and without."""

    module: str
    seconds: int
    alone: int


PARTS = (
    Part("maze", 20, 20),
    Part("start", 20, 20),
    Part("workers", 25, 25),
    Part("ppo", 110, 40),
    Part("collect", 110, 80),
    Part("off_policy", 150, 40),
    Part("worlds", 320, 110),
    Part("scaling", 110, 110),
)


def rows_of(part: str, peers: bool) -> Iterator[Row]:
    """The rows of a part."""
    yield from importlib.import_module(f"benchmarks.speed.{part}").rows(peers)


def others_use(seconds: float = 1.0) -> float:
    """How many cores the programs of this machine keep busy, while this one waits."""
    before, start = _busy_seconds(), time.perf_counter()
    time.sleep(seconds)
    after = _busy_seconds()
    if before is None or after is None:
        return os.getloadavg()[0]
    return (after - before) / (time.perf_counter() - start)


def _busy_seconds() -> float | None:
    """Seconds that all cores together have been busy since the machine started; None if it does not say."""
    with suppress(OSError):
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return None


def read() -> dict[str, Any]:
    """What is kept: rows by part, series of `scaling`, and what measuring everything took."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}, "scaling": []}


def keep(results: dict[str, Any]) -> None:
    """Write what was measured so far."""
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def measure(part: str, peers: bool, results: dict[str, Any]) -> None:
    """Measure a part, and put what it returns into the results, row by row."""
    load, when = others_use(), _today()
    if load > BUSY:
        print(f"Warning: other programs use {load:.1f} cores, so {part} will be too slow.", file=sys.stderr)
    if part == "scaling":
        results |= {"scaling": [], "scaling_load": load, **{f"scaling_{name}": value for name, value in when.items()}}
        for series in scaling.measure():
            results["scaling"].append(series._asdict())
            keep(results)
        return
    command, measured, versions = f"python -m benchmarks.speed.{part}", dict[str, Any](), page.versions()
    earlier = {row["name"]: row for row in results["rows"].get(part, [])}
    for row in rows_of(part, peers):
        found = dataclasses.replace(row, load=load, command=command, versions=versions, **when)
        measured[row.name] = dataclasses.asdict(found)
        results["rows"][part] = list((earlier | measured).values())
        keep(results)
    results["rows"][part] = list(measured.values())


def _today() -> dict[str, Any]:
    """The date and the machine, which are recorded beside what was measured."""
    return {"measured": datetime.date.today().isoformat(), "machine": page.machine()}


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
    return [Row(**row) for part in PARTS for row in results["rows"].get(part.module, [])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the page."""
    known = [part.module for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15, help="at most so long, without installing peers")
    parser.add_argument("--only", nargs="+", choices=known, default=known, help="these parts")
    parser.add_argument("--no-peers", action="store_true", help="ours and limits alone")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured before")
    options = parser.parse_args(arguments)
    results, left_out = read(), list[str]()
    if not options.page:
        if not options.no_peers:
            environment.install()
            rejax_environment.install()
        load = others_use()
        print(f"Load at the start: {load:.1f} of {scaling.CORES} cores, load average {os.getloadavg()[0]:.1f}.")
        if load > BUSY:
            print("Warning: this machine is busy, so all numbers will be too small, and unequally so.", file=sys.stderr)
        parts = [part for part in PARTS if part.module in options.only]
        began = time.monotonic()
        left_out = run(parts, not options.no_peers, options.minutes, results)
        minutes = (time.monotonic() - began) / 60
        print(f"Measured in {minutes:.1f} minutes.")
        if len(parts) == len(PARTS) and not options.no_peers and not left_out:
            results["whole_run"] = {"minutes": minutes, **_today()}
            keep(results)
    rows = all_rows(results)
    print(as_text(rows))
    for reason in left_out:
        print(f"Not measured: {reason}")
    page.write(rows, [scaling.Series(**series) for series in results["scaling"]], results)


if __name__ == "__main__":
    main()
