"""How soon PPO reaches a threshold in environments written in JAX, beside Rejax and Stable-Baselines3.

    python -m benchmarks.speed.worlds [--tasks CartPole-v1,Pendulum-v1] [--learners ours,rejax,sb3] [--seeds 1,16]
                                      [--longest SECONDS] [--json]

CartPole to a mean return of 475, Pendulum to -200; `reaching.py` says how that is measured and with which settings.
Ours and Rejax train in gymnax's environments, Stable-Baselines3 in Gymnasium's. Each learner runs in a process of its
own with an empty compilation cache; columns called `after` count from after compilation. For several seeds, times are
per seed: until all have reached the threshold, divided by their number; Stable-Baselines3 trains one seed, which every
ratio is to. Several seeds are stopped after `--longest` seconds of training: those that have not reached the threshold
by then would take longer than is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from unittest.mock import patch

from benchmarks.peers import environment, rejax_environment
from benchmarks.speed.reaching import TASKS
from benchmarks.speed.table import Row

PYTHONS = {"ours": sys.executable, "rejax": rejax_environment.PYTHON, "sb3": environment.PYTHON}
SEEDS = (1, 16)
NAMES = {"ours": "steadyrl", "rejax": "Rejax 0.1.3", "sb3": "Stable-Baselines3"}


def measure(learner, task, seeds, longest=math.inf):
    """The result of `reaching.py` for so many seeds, from 0 on."""
    numbers = ",".join(map(str, range(seeds)))
    # A compilation cache with nothing in it yet.
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, JAX_COMPILATION_CACHE_DIR=cache):
        printed = environment.run("benchmarks.speed.reaching", learner, task, numbers, longest, python=PYTHONS[learner])
    return json.loads(printed.splitlines()[-1])


def trainings(tasks, learners, seeds, longest=math.inf):
    """What was measured for each task, learner and number of seeds, as it is measured."""
    for task in tasks:
        reference = None
        for learner in sorted(learners, key=("sb3", "rejax", "ours").index):
            for count in seeds if learner != "sb3" else [1]:
                row = measure(learner, task, count, longest if count > 1 else math.inf)
                row["seconds_per_seed"] = row["seconds"] / count
                row["compiled_per_seed"] = row.get("seconds_compiled", row["seconds"]) / count
                reference = row["seconds"] if learner == "sb3" else reference
                if reference is not None:
                    row["ratio"] = reference / row["seconds_per_seed"]
                    row["ratio_compiled"] = reference / row["compiled_per_seed"]
                yield row


def rows(peers: bool = True, longest: float = 30.0) -> Iterator[Row]:
    """For the table of all benchmarks; with 16 seeds, Rejax would need minutes."""
    for task in TASKS:
        found = list(trainings([task], list(NAMES) if peers else ["ours"], SEEDS, longest))
        for count in SEEDS:
            some = [row for row in found if row["seeds"] == count or row["learner"] == "sb3"]
            for key, words in (("seconds_per_seed", ""), ("compiled_per_seed", ", after compilation")):
                (ours,) = (row for row in some if row["learner"] == "ours")
                others = {name(row): row[key] for row in some if row["learner"] != "ours"}
                many = f"{count} seed{'s' * (count > 1)}"
                title = f"PPO solves gymnax {task}, {many}, a seed{words}"
                yield Row(title, "s", ours[key], others, ours_note=missed(ours))


def missed(row):
    """How many seeds of a row reached the threshold, if not all did."""
    return "" if row["reached"] == row["seeds"] else f"{row['reached']} of {row['seeds']} seeds reach it"


def name(row):
    """The learner of a row, and how many of its seeds reached the threshold, if not all did."""
    return NAMES[row["learner"]] + (f" ({missed(row)})" if missed(row) else "")


def as_text(row):
    """A row of the table."""
    task, name = row["task"], NAMES[row["learner"]]
    ratios = [f"{row[key]:7.1f}x" if key in row else "" for key in ("ratio", "ratio_compiled")]
    line = (
        f"{task:12} {name:18} {row['seeds']:5} {row['steps']:9,} {row['seconds_per_seed']:9.2f} "
        f"{row['compiled_per_seed']:9.2f} {ratios[0]:>9} {ratios[1]:>9}  {missed(row)}"
    )
    return line.rstrip()


def main():
    """Print the rows as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--learners", default="ours,rejax,sb3")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--longest", type=float, default=math.inf, help="seconds of training of several seeds")
    parser.add_argument("--json", action="store_true", help="one line of JSON with all rows")
    given = parser.parse_args()
    learners = given.learners.split(",")
    if "sb3" in learners:
        environment.install()
    if "rejax" in learners:
        rejax_environment.install()
    if not given.json:
        columns = ("seeds", 5), ("steps", 9), ("s/seed", 9), ("after", 9), ("ratio", 9), ("after", 9)
        print(f"{'task':12} {'learner':18} {' '.join(f'{name:>{width}}' for name, width in columns)}")
    found = []
    seeds = [int(count) for count in given.seeds.split(",")]
    for row in trainings(given.tasks.split(","), learners, seeds, given.longest):
        found.append(row)
        if not given.json:
            print(as_text(row), flush=True)
    if given.json:
        print(json.dumps({"benchmark": "worlds", "rows": found}))


if __name__ == "__main__":
    main()
