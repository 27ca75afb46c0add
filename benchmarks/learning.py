"""Comparisons of what two libraries' agents learn with the same networks, settings and budgets of steps.

Each (environment, library, seed) is a process of its own and leaves a line of JSON in `results/NAME/runs.jsonl`; what
is there already is not run again, unless its settings have changed. The scripts `ppo_learning.py` and
`off_policy_learning.py` say what is compared; peers live in `.venv-peers` (see `peers.py`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers

Runs = dict[tuple[str, str, int], dict[str, Any]]
"""(environment, library, seed) -> what was asked and found."""
SEEDS = 3


@dataclass(frozen=True)
class Comparison:
    """Ours beside another library's."""

    name: str
    """Of its script, and of its folder in results/."""
    script: str
    """Does one run, given what `asked` says as JSON; see `learning_run.py`."""
    environments: Collection[str]
    peer: str
    """The other library."""
    asked: Callable[[str, str, int, int], dict[str, Any]]
    """What the script is to do, from environment, library, seed and threads."""
    table: Callable[[Runs], str]
    page: Callable[[Runs], str]
    page_file: str
    """Where in the project the page is."""

    def finished(self, file: Path) -> Runs:
        """The runs in the file whose settings are still those that `asked` tells."""
        lines = file.read_text().splitlines() if file.exists() else []
        runs = (json.loads(line) for line in lines)
        return {
            _key(run): run for run in runs if run["env"] in self.environments and run["asked"] == self._asked_again(run)
        }

    def _asked_again(self, run: dict[str, Any]) -> dict[str, Any]:
        return self.asked(*_key(run), run["asked"]["threads"])

    def do(self, file: Path, env: str, library: str, seed: int, threads: int) -> None:
        """One run, and its line in the file."""
        run = self.asked(env, library, seed, threads)
        python = {"python": sys.executable} if library == "ours" else {}
        code = commit()
        script = Path(__file__).with_name(self.script)
        printed = peers.run(script, json.dumps(run), threads=threads, **python)
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "code": code if library == "ours" else None}
        today = datetime.date.today().isoformat()
        found = {"env": env, "library": library, "seed": seed, "date": today, **machine, "asked": run}
        with file.open("a") as lines:
            lines.write(json.dumps(found | json.loads(printed)) + "\n")

    def main(self, description: str | None) -> None:
        """Run what is missing, and print or write what there is."""
        libraries = ("ours", self.peer)
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument(
            "--only", choices=self.environments, nargs="+", default=list(self.environments), help="these environments"
        )
        parser.add_argument("--library", choices=libraries, help="one of the two")
        parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds of each: 0, 1, ...")
        parser.add_argument("--threads", type=int, default=1, help="threads for matrix products")
        parser.add_argument(
            "--out", type=Path, default=peers.ROOT / "results" / self.name, help="where results are kept"
        )
        parser.add_argument("--again", action="store_true", help="run also what is there; the newest counts")
        parser.add_argument("--report", action="store_true", help="run nothing; write the page from what is there")
        options = parser.parse_args()
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / "runs.jsonl"
        if not options.report:
            self._run_missing(file, options, [options.library] if options.library else libraries)
        runs = self.finished(file)
        if not runs:
            sys.exit(f"There are no results in {file} yet.")
        print(self.table(runs))
        if options.report:
            (peers.ROOT / self.page_file).write_text(self.page(runs))

    def _run_missing(self, file: Path, options: argparse.Namespace, libraries: Collection[str]) -> None:
        if self.peer in libraries:
            peers.install()
        wanted = [
            (env, library, seed) for env in options.only for seed in range(options.seeds) for library in libraries
        ]
        for key in wanted:
            if options.again or key not in self.finished(file):
                print(f"{key[0]}, {key[1]}, seed {key[2]} ...", flush=True)
                self.do(file, *key, options.threads)


def commit() -> str:
    """The commit that our library is at, with a + if files of it have changed since."""
    git = ["git", "-C", str(peers.ROOT)]
    head, changes = (
        subprocess.run([*git, *command], capture_output=True, text=True).stdout.strip()
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "src"])
    )
    return head + "+" * bool(changes)


def _key(run: dict[str, Any]) -> tuple[str, str, int]:
    return run["env"], run["library"], run["seed"]
