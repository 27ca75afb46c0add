"""What our agents learn, beside another library's with the same networks, settings and budgets of steps.

    python -m benchmarks.learning.compare ppo         # beside Stable-Baselines3's PPO; see ppo.toml
    python -m benchmarks.learning.compare off_policy  # DQN and TD3 beside SBX's; see off_policy.toml

Each (environment, library, seed) is a process of its own (`train_one.py`) and leaves a line of JSON in
`results/ppo_learning/runs.jsonl` or `results/off_policy_learning/runs.jsonl`. What is there already is not run again,
unless its settings have changed. A table of everything that is there is printed; with `--report` nothing is run, and
the page in docs/results is written. Peers live in `.venv-peers` (see `peers/environment.py`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.learning import report
from benchmarks.peers import environment

FOLDER = Path(__file__).parent
FAMILIES = ["off_policy", "ppo"]
SEEDS = 3

Key = tuple[str, str, int]
"""Environment, library, seed."""
Runs = dict[Key, dict[str, Any]]
"""What was asked for, and the result."""


@dataclass(frozen=True)
class Family:
    """Agents that are compared with those of one other library: the contents of a TOML file."""

    name: str
    results: str
    """Its folder in results/."""
    peer: str
    """The other library."""
    page: str
    """The page, from the root of the project."""
    evaluations: dict[str, str]
    """How the final policies act -> its title."""
    shared: dict[str, dict[str, Any]]
    """Algorithm -> settings of both sides, under our names."""
    cases: dict[str, dict[str, Any]]
    """Environment -> algorithm, timesteps, its own settings, and what belongs to one side alone."""
    columns: dict[str, str]
    """Of the page's table of cases: title -> template."""
    text: dict[str, str]
    """The template of the page."""

    @classmethod
    def load(cls, name: str) -> Family:
        """The family in a file."""
        return cls(name=name, **tomllib.loads((FOLDER / f"{name}.toml").read_text()))

    def description(self, env: str, library: str, seed: int, threads: int | None) -> dict[str, Any]:
        """Of an agent and its training; see `peers/agents.py`."""
        case = self.cases[env]
        algorithm, settings = case["algorithm"], self.shared[case["algorithm"]] | case["settings"]
        if algorithm == "TD3" and library == "ours":
            # SBX moves its targets at every update, ours with the policy: as far in one move as theirs in so many.
            settings["tau"] = 1 - (1 - settings["tau"]) ** settings["policy_delay"]
        run = {"env": env, "library": library, "seed": seed, "threads": threads, "timesteps": case["timesteps"]}
        own = case.get("ours" if library == "ours" else "theirs", {})
        return {**run, **own, "algorithm": algorithm, "settings": settings}

    def finished(self, file: Path) -> Runs:
        """The runs in the file whose settings are still those of the family."""
        lines = file.read_text().splitlines() if file.exists() else []
        runs = (json.loads(line) for line in lines)
        return {_key(run): run for run in runs if run["env"] in self.cases and self._is_current(run)}

    def _is_current(self, run: dict[str, Any]) -> bool:
        # Older runs of PPO did not record their algorithm.
        asked = {"algorithm": "PPO", **run["asked"]}
        return asked == self.description(*_key(run), asked["threads"])


def train(family: Family, file: Path, key: Key, threads: int) -> None:
    """One run, and its line in the file."""
    env, library, seed = key
    description = family.description(env, library, seed, threads)
    python = sys.executable if library == "ours" else environment.PYTHON
    code = commit() if library == "ours" else None
    arguments = ("benchmarks.learning.train_one", json.dumps(description), *family.evaluations)
    result = json.loads(environment.run(*arguments, python=python, threads=threads))
    run = {
        "env": env,
        "library": library,
        "seed": seed,
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "code": code,
        "asked": description,
    }
    with file.open("a") as lines:
        lines.write(json.dumps(run | result) + "\n")


def commit() -> str:
    """The commit that our library is at, with a + if files of it have changed since."""
    git = ["git", "-C", str(environment.ROOT)]
    head, changes = (
        subprocess.run([*git, *command], capture_output=True, text=True).stdout.strip()
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "src"])
    )
    return head + "+" * bool(changes)


def train_missing(family: Family, file: Path, keys: Collection[Key], threads: int, again: bool = False) -> None:
    """Those of the runs that are not in the file, or all of them."""
    if any(library != "ours" for _, library, _ in keys):
        environment.install()
    for key in keys:
        if again or key not in family.finished(file):
            print(f"{key[0]}, {key[1]}, seed {key[2]} ...", flush=True)
            train(family, file, key, threads)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print or write what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--only", metavar="ENV", nargs="+", help="these environments")
    parser.add_argument("--library", choices=("ours", "sb3", "sbx"), help="one of the two")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds of each: 0, 1, ...")
    parser.add_argument("--threads", type=int, default=1, help="threads for matrix products")
    parser.add_argument("--out", type=Path, help="where results are stored")
    parser.add_argument("--again", action="store_true", help="run also what is there; the newest counts")
    parser.add_argument("--report", action="store_true", help="run nothing; write the page from what is there")
    options = parser.parse_args(arguments)
    family = Family.load(options.family)
    libraries = [options.library] if options.library else ["ours", family.peer]
    for given, known in ((options.only or [], family.cases), (libraries, ("ours", family.peer))):
        if unknown := set(given) - set(known):
            parser.error(f"{family.name}: {', '.join(sorted(unknown))} is not one of {', '.join(known)}.")
    out = options.out or environment.ROOT / "results" / family.results
    out.mkdir(parents=True, exist_ok=True)
    file = out / "runs.jsonl"
    if not options.report:
        environments = options.only or family.cases
        keys = [(env, library, seed) for env in environments for seed in range(options.seeds) for library in libraries]
        train_missing(family, file, keys, options.threads, options.again)
    runs = family.finished(file)
    if not runs:
        sys.exit(f"There are no results in {file} yet.")
    print(report.table(family, runs))
    if options.report:
        (environment.ROOT / family.page).write_text(report.page(family, runs))


def _key(run: dict[str, Any]) -> Key:
    return run["env"], run["library"], run["seed"]


if __name__ == "__main__":
    main()
